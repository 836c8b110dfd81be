//! What two ends of a connection have to tell each other, over a stream that they have already.
//!
//! Each end sends its endpoint and reads the other's, drives its queue pair to RTS with it, then says that it is ready
//! and waits for the other to say so: whoever sends the first message is sure that the other end receives.
//!
//! [`Endpoint`] has the format. Whatever a peer sends, the outcome is an endpoint whose fields are in its ranges, or an
//! error, after 200 bytes at most. Time-outs are the stream's own: set them, where the peer may be anybody.

mod connection;
mod endpoint;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};

pub use connection::Connection;
pub use endpoint::{Endpoint, EndpointError};
use endpoint::{HEADER_BYTES, Step};

use crate::error::Error;
use crate::sys::QpType;

impl Endpoint {
    /// Sends this endpoint, then reads the peer's. The stream has to hold 200 bytes, since both ends write first.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::Stream`], [`HandshakeError::Endpoint`], [`HandshakeError::OtherTransport`].
    pub fn exchange<S: Read + Write + ?Sized>(&self, stream: &mut S) -> Result<Self, HandshakeError> {
        stream.write_all(&self.to_bytes())?;
        stream.flush()?;
        let mut bytes = [0; Self::BYTES];
        // A peer that speaks something else may never send as much as an endpoint has.
        let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
        stream.read_exact(header)?;
        Step::Endpoint.check(header)?;
        stream.read_exact(rest)?;
        let peer = Self::from_bytes(&bytes)?;
        self.require_same_transport(peer.transport())?;
        Ok(peer)
    }

    /// Says that this end is ready, then waits until the peer says so.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::Stream`], where the peer has failed meanwhile; [`HandshakeError::Endpoint`].
    pub fn ready<S: Read + Write + ?Sized>(&self, stream: &mut S) -> Result<(), HandshakeError> {
        stream.write_all(&Step::Ready.header(self.transport()))?;
        stream.flush()?;
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header)?;
        self.require_same_transport(Step::Ready.check(&header)?)
    }

    fn require_same_transport(&self, theirs: QpType) -> Result<(), HandshakeError> {
        let ours = self.transport();
        if ours == theirs { Ok(()) } else { Err(HandshakeError::OtherTransport { ours, theirs }) }
    }
}

/// Why two ends did not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The stream between them has failed.
    #[error("the stream to the peer has failed: {source}{}", advice(.source))]
    Stream {
        /// Why.
        #[from]
        source: io::Error,
    },
    /// What came is no endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// One is a reliable connection, the other is not.
    #[error(
        "the peer's queue pair is of transport {theirs:?}, this one of {ours:?}: both must have the same"
    )]
    OtherTransport {
        /// That of our queue pair.
        ours: QpType,
        /// That of the peer's.
        theirs: QpType,
    },
    /// The device refuses the connection.
    #[error(transparent)]
    Verbs(#[from] Error),
}

/// What most often is behind it.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "; it has hung up: its own error says why"
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "; it has not answered in the stream's time-out"
        }
        _ => "",
    }
}
