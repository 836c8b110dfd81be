//! Tests on a scripted device: what hardware and drivers do rarely, or cannot be made to do.

mod completions;
mod device;
mod drops;
mod heap;
mod posting;
mod refusals;
mod registering;
mod rig;
mod shared;
mod table;
mod transitions;
