mod codes;
mod header;
mod signature;
mod table;
