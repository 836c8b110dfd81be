//! Waiting as a task of tokio, on the event of a handle's direction.
//!
//! A poll goes as a sleep of a thread does, and is Pending where that sleeps: see the table in `word`. What differs:
//!
//! - Nobody reads the event. The runtime waits for edges, and each signal is one for every descriptor of the event,
//!   also when it is readable already. To read it would take signals away from other tasks whose descriptors the
//!   runtime has not looked at yet; what they wait for may be another ring, so that nobody would signal again.
//! - The runtime's note that there was an edge is taken before the notice goes out: an edge from then on is meant for
//!   it. A note may be old, and then costs one more look; never two, since it is taken.
//! - A notice holds until an edge comes, over as many polls as there are, and over messages that were found without
//!   one. Until then either the notice stands or its edge is on the way, so a poll that finds nothing needs no other,
//!   and no barrier. Where the slice is over it goes out again: whoever took it back may have been killed before its
//!   signal.
//! - What is found is returned by the same poll. A future that is dropped has taken nothing and sent nothing.

mod receiver;
mod sender;
mod sleeper;

pub use receiver::AsyncReceiver;
pub use sender::AsyncSender;
