//! What is left of creators that were killed, and removing it.
//!
//! A creator makes its file under a temporary name, which tells what it is, and locks it as its user. The file gets its
//! own name once its header is written. So a file without a user is a rest if it has a temporary name and no content yet, or
//! if its header says that it is a segment which is not published.
//!
//! Whoever removes a rest keeps others from being its users meanwhile, and looks again once it does:
//!
//! - Nobody is about to publish it, since whoever could is a user.
//! - A creator that has made its file and not locked it yet finds that it cannot, or that the name is gone, and makes
//!   another. So does, or waits, who would attach.
//! - The name leads to the file that is locked. Others who remove rests of it are kept out, and so nobody can make another
//!   of that name, unless somebody removes it who does not look what it is ([`unlink`](crate::unlink), or `rm`).
//!
//! A segment that is published stays so, and is never locked here: nobody is kept from attaching to it.

use crate::header::Header;
use crate::name::Name;
use crate::place::Directory;
use crate::{Descriptor, Error, lock, sys};

/// Removes what has a name if it is a rest. False: it is something else, or is gone.
pub(crate) fn remove(directory: &Directory, name: &Name) -> bool {
    let Ok(Some(descriptor)) = directory.open(name) else { return false };
    let is_unpublished = || is_unpublished(&descriptor, name.is_temporary());
    is_unpublished()
        && lock::exclude_users(&descriptor) == Ok(true)
        && is_unpublished()
        && sys::status(&descriptor).is_ok_and(|own| directory.identity(name) == Some(own.identity))
        && directory.unlink(name).is_ok()
}

/// Removes rests with temporary names from a directory, as far as this user may.
pub(crate) fn remove_temporary(directory: &Directory) {
    // What stays does no harm but to take memory, and is found by the next.
    let _ = directory.each_name(|name| {
        if name.is_temporary() {
            remove(directory, name);
        }
    });
}

/// Whether a file is a segment that is not published, or is to become one if it may still be `blank`.
fn is_unpublished(descriptor: &Descriptor, blank: bool) -> bool {
    let Ok(header) = Header::of_file(descriptor) else { return false };
    // Lengths matter once it is published.
    match header.read(0, 0) {
        Ok(None) => true,
        Err(Error::WrongMagic { found: 0 }) => blank,
        _ => false,
    }
}
