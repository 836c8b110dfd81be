//! The locks by which processes that share a segment see each other's life.
//!
//! They are locks of open file descriptions (F_OFD_SETLK) on single bytes, far behind the end of the file. The kernel
//! takes them back when their owner dies, however it does. A description is shared by whoever was forked, handed the
//! descriptor or mapped it, so that there are two:
//!
//! - The one that the segment is mapped from has the *user* lock of a named segment and no other. It stays locked as long
//!   as anybody has that mapping, a forked child too. Roles are asked about through it, since it never has one.
//! - A role is claimed on a description of its own, which is never mapped, and which neither a forked child nor a program
//!   started by `exec` keeps: see [`fork`](crate::fork).
//!
//! | byte | lock | who has it |
//! |---|---|---|
//! | 2^62 | shared | each process that has the named segment mapped, but for those that only look at it |
//! | 2^62 | exclusive | who removes a segment that nobody uses |
//! | 2^62 + 1 | exclusive | the producer |
//! | 2^62 + 2 | exclusive | the consumer |
//! | 2^62 + 2 + n | exclusive | participant n |

use ring_core::Role;

use crate::sys::{self, LockKind};
use crate::{Descriptor, Errno};

/// The byte of the user lock.
const USERS: i64 = 1 << 62;

/// The byte of a role; none for roles that this version does not know.
fn byte(role: Role) -> Option<i64> {
    match role {
        Role::Producer => Some(USERS + 1),
        Role::Consumer => Some(USERS + 2),
        Role::Participant(number) => Some(USERS + 2 + i64::from(number)),
        _ => None,
    }
}

/// Says that somebody uses the segment, for as long as the description is mapped or open. False: it was removed, or
/// somebody is about to.
pub(crate) fn join_users(mapped: &Descriptor) -> Result<bool, Errno> {
    // Its names are counted with the lock: nobody removes it for want of users from now on.
    Ok(sys::lock_byte(mapped, USERS, LockKind::Shared)? && sys::status(mapped)?.names > 0)
}

/// Keeps others from using the segment, for as long as the description is open. False: somebody uses it.
pub(crate) fn exclude_users(own: &Descriptor) -> Result<bool, Errno> {
    sys::lock_byte(own, USERS, LockKind::Exclusive)
}

/// Whether somebody uses the segment; `descriptor` belongs to no user.
pub(crate) fn has_users(descriptor: &Descriptor) -> Result<bool, Errno> {
    sys::is_byte_locked(descriptor, USERS)
}

/// Takes a role for as long as the description is open. False: somebody has it.
pub(crate) fn take_role(own: &Descriptor, role: Role) -> Result<bool, Errno> {
    sys::lock_byte(own, byte(role).ok_or(Errno::INVAL)?, LockKind::Exclusive)
}

/// Gives a role back.
pub(crate) fn leave_role(own: &Descriptor, role: Role) {
    if let Some(byte) = byte(role) {
        sys::unlock_byte(own, byte);
    }
}

/// Whether somebody has the role; `asking` never has one.
pub(crate) fn is_role_taken(asking: &Descriptor, role: Role) -> Result<bool, Errno> {
    sys::is_byte_locked(asking, byte(role).ok_or(Errno::INVAL)?)
}
