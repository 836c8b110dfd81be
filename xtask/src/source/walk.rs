//! The walk over the tokens of a file.

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

use super::{Access, Callee, FENCES, Facts, ORDERINGS};

pub(super) fn facts(tokens: TokenStream) -> Facts {
    let mut walk = Walk { facts: Facts::default(), function: None };
    walk.block(tokens);
    walk.facts
}

struct Walk {
    facts: Facts,
    /// The function whose body this is.
    function: Option<String>,
}

/// The statement under way.
#[derive(Debug, Clone, Copy)]
struct Statement {
    line: usize,
    is_use: bool,
}

impl Walk {
    /// A file or what braces hold: statements, items, match arms, fields.
    fn block(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut statement = None;
        let mut function_ahead = None;
        let (mut item_ahead, mut test_ahead) = (false, false);
        for (index, token) in tokens.iter().enumerate() {
            let begun = *statement.get_or_insert_with(|| Statement {
                line: first_line(token),
                is_use: tokens[index..].iter().take(3).any(|token| is_ident(token, "use")),
            });
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    if test_ahead {
                        self.facts.test_spans.push((first_line(token), last_line(group)));
                    } else if begun.is_use {
                        self.arguments(group, begun, None);
                    } else {
                        let outer = self.function.clone();
                        self.function = function_ahead.take().or(outer.clone());
                        self.block(group.stream());
                        self.function = outer;
                    }
                    if !tokens.get(index + 1).is_some_and(continues_after_braces) {
                        (statement, function_ahead) = (None, None);
                        (item_ahead, test_ahead) = (false, false);
                    }
                }
                TokenTree::Group(group) => {
                    self.group(&tokens, index, group, begun);
                    test_ahead |= is_attribute(&tokens, index) && is_for_checks(group.stream());
                }
                // The commas of an item's generic parameters end nothing.
                TokenTree::Punct(punct)
                    if punct.as_char() == ';' || (punct.as_char() == ',' && !item_ahead) =>
                {
                    if test_ahead {
                        self.facts.test_modules.extend(module_name(&tokens[..index]));
                    }
                    (statement, function_ahead) = (None, None);
                    (item_ahead, test_ahead) = (false, false);
                }
                TokenTree::Ident(ident) if begins_item(ident) => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(index + 1) {
                        item_ahead = true;
                        function_ahead = (ident == "fn").then(|| name.to_string());
                    } else {
                        item_ahead |= ident == "impl";
                    }
                }
                _ => self.token(&tokens, index, begun, None),
            }
        }
    }

    /// What parentheses or brackets hold: it belongs to the statement around it.
    fn arguments(&mut self, group: &Group, statement: Statement, callee: Option<&Callee>) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        let is_call = group.delimiter() == Delimiter::Parenthesis && callee.is_some();
        for (index, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(inner) if inner.delimiter() == Delimiter::Brace && !statement.is_use => {
                    self.block(inner.stream());
                }
                TokenTree::Group(inner) => self.group(&tokens, index, inner, statement),
                TokenTree::Ident(ident) if is_call && is_whole_argument(&tokens, index) => {
                    let name = ident.to_string();
                    if ORDERINGS.contains(&name.as_str()) {
                        self.access(name, ident.span(), statement, callee);
                    }
                }
                _ => self.token(&tokens, index, statement, callee),
            }
        }
    }

    fn group(&mut self, tokens: &[TokenTree], index: usize, group: &Group, statement: Statement) {
        if is_attribute(tokens, index) && is_assertion(&tokens[index + 1..]) {
            return;
        }
        let callee = index.checked_sub(1).and_then(|before| match &tokens[before] {
            TokenTree::Ident(ident) => Some(Callee::of(ident, first_of_path(tokens, before))),
            _ => None,
        });
        let is_callee = |name| callee.as_ref().is_some_and(|callee| callee.name == name);
        if is_callee("cfg") || is_callee("cfg_attr") || is_macro(tokens, index, "cfg") {
            let names = |name| mentions(group.stream(), name);
            if names("loom") && !names("test") {
                self.facts.loom_cfgs.push(line(group.span_open()));
            }
        }
        if is_attribute(tokens, index) && mentions(group.stream(), "unsafe_code") {
            if index.checked_sub(1).is_some_and(|before| is_punct(&tokens[before], '!')) {
                self.facts.file_allows_unsafe = true;
            } else {
                self.facts.items_that_allow_unsafe.push(line(group.span_open()));
            }
        }
        let is_defined = index.checked_sub(2).is_some_and(|at| is_ident(&tokens[at], "fn"));
        if FENCES.into_iter().any(is_callee) && !is_defined {
            self.access("SeqCst".into(), tokens[index - 1].span(), statement, callee.as_ref());
        }
        self.arguments(group, statement, callee.as_ref());
    }

    /// Looks for `Ordering::X` that ends at this token.
    fn token(&mut self, tokens: &[TokenTree], index: usize, statement: Statement, callee: Option<&Callee>) {
        let TokenTree::Ident(ident) = &tokens[index] else { return };
        let name = ident.to_string();
        let is_ordering = ORDERINGS.contains(&name.as_str());
        if statement.is_use {
            let renamed = tokens.get(index + 1).is_some_and(|next| is_ident(next, "as"));
            if renamed && (is_ordering || name == "Ordering") {
                self.facts.renamed_orderings.push(line(ident.span()));
            }
        } else if is_ordering && is_behind_path(tokens, index, "Ordering") {
            self.access(name, ident.span(), statement, callee);
        }
    }

    fn access(&mut self, ordering: String, span: Span, statement: Statement, callee: Option<&Callee>) {
        // It is half of a fence, and orders nothing between cores by itself.
        if callee.is_some_and(|callee| callee.name == "compiler_fence") {
            return;
        }
        self.facts.accesses.push(Access {
            ordering,
            line: line(span),
            statement_line: statement.line,
            callee: callee.cloned(),
            function: self.function.clone(),
        });
    }
}

impl Callee {
    /// A call by a path begins where the path does, one of a method at its name.
    fn of(ident: &Ident, first: Span) -> Self {
        let start = first.start();
        Self { name: ident.to_string(), line: start.line, column: start.column + 1 }
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

fn first_line(token: &TokenTree) -> usize {
    match token {
        TokenTree::Group(group) => line(group.span_open()),
        _ => line(token.span()),
    }
}

fn last_line(group: &Group) -> usize {
    group.span_close().end().line
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn begins_item(ident: &Ident) -> bool {
    ["fn", "impl", "struct", "enum", "union", "trait", "type"].iter().any(|keyword| ident == keyword)
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// After `}`: `else`, a method call, `?` or an operator carry the statement on. `&`, `*` and `-` rather begin one.
fn continues_after_braces(next: &TokenTree) -> bool {
    match next {
        TokenTree::Ident(ident) => ident == "else" || ident == "as",
        TokenTree::Punct(punct) => {
            matches!(punct.as_char(), '.' | '?' | '=' | '<' | '>' | '+' | '/' | ',' | ';')
        }
        _ => false,
    }
}

/// Whether the group at `index` is that of `#[…]` or `#![…]`.
fn is_attribute(tokens: &[TokenTree], index: usize) -> bool {
    let TokenTree::Group(group) = &tokens[index] else { return false };
    let before = |back: usize| index.checked_sub(back).map(|at| &tokens[at]);
    let hash = |token: Option<&TokenTree>| token.is_some_and(|token| is_punct(token, '#'));
    group.delimiter() == Delimiter::Bracket
        && (hash(before(1)) || (before(1).is_some_and(|token| is_punct(token, '!')) && hash(before(2))))
}

/// Whether an item is a `const _`, whose layout assertions may differ under loom: it holds no algorithm.
fn is_assertion(item: &[TokenTree]) -> bool {
    matches!(item, [keyword, name, ..] if is_ident(keyword, "const") && is_ident(name, "_"))
}

/// Whether the group at `index` is what the macro `name` is given.
fn is_macro(tokens: &[TokenTree], index: usize, name: &str) -> bool {
    index >= 2 && is_punct(&tokens[index - 1], '!') && is_ident(&tokens[index - 2], name)
}

/// Where the path begins whose last name is at `index`.
fn first_of_path(tokens: &[TokenTree], mut index: usize) -> Span {
    while index >= 3
        && is_punct(&tokens[index - 1], ':')
        && is_punct(&tokens[index - 2], ':')
        && matches!(tokens[index - 3], TokenTree::Ident(_))
    {
        index -= 3;
    }
    tokens[index].span()
}

/// Whether the token at `index` comes after `name::`.
fn is_behind_path(tokens: &[TokenTree], index: usize, name: &str) -> bool {
    index >= 3
        && is_punct(&tokens[index - 1], ':')
        && matches!(&tokens[index - 2], TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint)
        && is_ident(&tokens[index - 3], name)
}

/// Whether the token at `index` stands between commas or at an end.
fn is_whole_argument(tokens: &[TokenTree], index: usize) -> bool {
    let comma = |token: &TokenTree| is_punct(token, ',');
    index.checked_sub(1).is_none_or(|before| comma(&tokens[before]))
        && tokens.get(index + 1).is_none_or(comma)
}

fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match &token {
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => is_ident(&token, name),
    })
}

/// Whether an attribute is `cfg(test)` or `cfg(all(…, test, …))`, or that with loom.
fn is_for_checks(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [name, TokenTree::Group(group)] if is_ident(name, "cfg") => demands_checks(group.stream()),
        _ => false,
    }
}

fn demands_checks(predicate: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = predicate.into_iter().collect();
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Group(group) => {
            index > 0 && is_ident(&tokens[index - 1], "all") && demands_checks(group.stream())
        }
        _ => is_ident(token, "test") || is_ident(token, "loom"),
    })
}

/// The name in `… mod name` at the end.
fn module_name(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [.., keyword, TokenTree::Ident(name)] if is_ident(keyword, "mod") => Some(name.to_string()),
        _ => None,
    }
}
