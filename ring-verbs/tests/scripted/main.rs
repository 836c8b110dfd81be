//! Tests on a scripted device: what hardware and drivers do rarely, or cannot be made to do.

mod completions;
mod device;
mod drops;
mod events;
mod heap;
mod moderation;
mod posting;
mod refusals;
mod registering;
mod reregistering;
mod rig;
mod shared;
mod stamps;
mod table;
mod thread_domains;
mod transitions;
