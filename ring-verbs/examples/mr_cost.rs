//! What it costs to register memory and to give the registration back, against taking a slab from a pool that was
//! registered once, by size.

mod common;

use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use common::Device;
use ring_verbs::{MemoryRegion, PageMemory, Pages};

/// Time of a registration against that of a slab from a pool, by size
#[derive(Debug, Parser)]
struct Options {
    /// The device, as rxe0 or mlx5_0; by default the first one
    #[arg(short, long)]
    device: Option<String>,
    /// How often each is done
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// The largest size, in MiB; the locked memory must allow as much (`ulimit -l`)
    #[arg(short, long, default_value_t = 64)]
    most: u32,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let device = Device::at(options.device.as_deref(), 1, None)?;
    println!(
        "{:>10} {:>12} {:>12} {:>12}   ns, median of {}",
        "KiB", "register", "deregister", "slab", options.iterations
    );
    let mut kibibytes = 4;
    while kibibytes <= options.most * 1024 {
        let [register, deregister] = registration(&device, kibibytes as usize * 1024, options.iterations)?;
        let slab = slab(&device, kibibytes * 1024, options.iterations)?;
        println!("{kibibytes:>10} {register:>12} {deregister:>12} {slab:>12}");
        kibibytes *= 4;
    }
    Ok(())
}

/// Of memory that is there already: bringing pages in would be paid without RDMA as well.
fn registration(device: &Device, bytes: usize, iterations: u32) -> Result<[u128; 2]> {
    let mut memory = PageMemory::new(bytes, Pages::Small, None)?;
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..iterations {
        let begin = Instant::now();
        let region = MemoryRegion::new(&device.domain, memory).map_err(ring_verbs::Error::from)?;
        begins.push(begin.elapsed().as_nanos());
        let end = Instant::now();
        memory = region.into_memory().expect("the device lets it go");
        ends.push(end.elapsed().as_nanos());
    }
    Ok([median(begins), median(ends)])
}

/// Taking a slab and giving it back, many at a time since a clock is slower than either.
fn slab(device: &Device, bytes: u32, iterations: u32) -> Result<u128> {
    const AT_A_TIME: u32 = 1000;
    let pool = device.pool(bytes, 1)?;
    let mut times = Vec::new();
    for _ in 0..iterations {
        let begin = Instant::now();
        for _ in 0..AT_A_TIME {
            core::hint::black_box(pool.take().expect("it was given back"));
        }
        times.push(begin.elapsed().as_nanos() / u128::from(AT_A_TIME));
    }
    Ok(median(times))
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2]
}
