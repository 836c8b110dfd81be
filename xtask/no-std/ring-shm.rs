//! Links ring-shm without std.
#![no_std]
#![no_main]

mod hosted;

use ring_shm as _;

fn main() {}
