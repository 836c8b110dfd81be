//! A gateway: one task serves two rings and a TCP socket. Quotes come over one ring; a client's orders come over TCP,
//! and go to an engine over the other ring, as fast as that takes them.
//!
//! Feed, engine and client are threads here, and know nothing of tokio. In processes of their own they would have the
//! rings in segments, and the events' descriptors passed to them.

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;

use ring_core::{HeapRegion, spsc};
use ring_notify::{AsyncReceiver, AsyncSender, Event, Options, Receiver, RecvError, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const QUOTES: u64 = 10_000;
const ORDERS: u64 = 10_000;
/// Orders that the gateway keeps while the engine has no room; beyond, the client waits.
const BACKLOG: usize = 1_024;

/// What the client wants, and the price that the gateway saw last.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Order {
    quantity: u64,
    price: u64,
}

type Region = Arc<HeapRegion>;
type Quotes = spsc::Consumer<u64, Region>;
type Orders = spsc::Producer<Order, Region>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Quotes wake the gateway, and room for orders does: one event serves for both.
    let event = Arc::new(Event::new()?);
    let options = Options::new().messages_event(Arc::clone(&event)).room_event(event);

    let layout = spsc::Layout::new(64)?;
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
    let feed = options.clone().sender(producer)?;
    let quotes = options.clone().receiver(consumer)?.into_async()?;

    let layout = spsc::Layout::new(64)?;
    let (producer, consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
    let orders = options.clone().sender(producer)?.into_async()?;
    let engine = options.receiver(consumer)?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let feed = thread::spawn(move || publish(feed));
    let engine = thread::spawn(move || execute(engine));
    let client = thread::spawn(move || trade(address));

    let (socket, _) = listener.accept().await?;
    let seen = serve(quotes, orders, socket).await?;

    feed.join().expect("the feed ends well");
    let (executed, quantity) = engine.join().expect("the engine ends well");
    let accepted = client.join().expect("the client ends well")?;
    assert_eq!((seen, accepted, executed), (QUOTES, ORDERS, ORDERS));
    assert_eq!(quantity, ORDERS * (ORDERS + 1) / 2);
    println!("saw {seen} quotes; {executed} orders for {quantity} in all were executed");
    Ok(())
}

/// Serves all three until both the feed and the client have ended. Returns the number of quotes.
async fn serve(
    mut quotes: AsyncReceiver<Quotes>,
    mut orders: AsyncSender<Orders>,
    mut socket: TcpStream,
) -> Result<u64, Box<dyn Error>> {
    let (mut is_feed_there, mut is_client_there) = (true, true);
    let (mut price, mut seen, mut accepted) = (0, 0, 0_u64);
    let mut received = Vec::new();
    let mut backlog = VecDeque::new();
    loop {
        // Whatever is dropped here has taken nothing.
        tokio::select! {
            quote = quotes.recv(), if is_feed_there => match quote {
                Ok(quote) => (price, seen) = (quote, seen + 1),
                Err(RecvError::Ring(spsc::PopError::Closed)) => is_feed_there = false,
                Err(error) => return Err(error.into()),
            },
            count = socket.read_buf(&mut received), if is_client_there && backlog.len() < BACKLOG => {
                is_client_there = count? > 0;
                let whole = received.len() - received.len() % 8;
                for bytes in received[..whole].chunks_exact(8) {
                    let quantity = u64::from_le_bytes(bytes.try_into()?);
                    backlog.push_back(Order { quantity, price });
                }
                received.drain(..whole);
            }
            // Not `send`, which would keep the others waiting, or drop an order when one of them is faster.
            room = orders.ready(), if !backlog.is_empty() => {
                room?;
                let sent = orders.get_mut().publish(|producer| producer.push_slice(backlog.make_contiguous()))?;
                backlog.drain(..sent);
                accepted += sent as u64;
            }
            else => break,
        }
    }
    orders.close();
    socket.write_all(&accepted.to_le_bytes()).await?;
    Ok(seen)
}

fn publish(mut feed: Sender<spsc::Producer<u64, Region>>) {
    for number in 0..QUOTES {
        if number % 100 == 0 {
            thread::sleep(Duration::from_micros(100)); // quotes come in bursts
        }
        feed.send(10_000 + number % 7).expect("the gateway is there");
    }
    feed.close();
}

fn execute(mut engine: Receiver<spsc::Consumer<Order, Region>>) -> (u64, u64) {
    let (mut executed, mut quantity) = (0, 0);
    while let Ok(order) = engine.recv() {
        assert!(order.price == 0 || (10_000..10_007).contains(&order.price), "{order:?}");
        (executed, quantity) = (executed + 1, quantity + order.quantity);
    }
    (executed, quantity)
}

/// Sends its orders, and returns how many were accepted.
fn trade(gateway: SocketAddr) -> std::io::Result<u64> {
    let mut socket = std::net::TcpStream::connect(gateway)?;
    for quantity in 1..=ORDERS {
        socket.write_all(&quantity.to_le_bytes())?;
    }
    socket.shutdown(Shutdown::Write)?;
    let mut accepted = [0; 8];
    socket.read_exact(&mut accepted)?;
    Ok(u64::from_le_bytes(accepted))
}
