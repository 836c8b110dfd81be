//! Both sides of an spsc ring go on while its words are overwritten.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_core::AssumeGone;
use ring_core::spsc::{Consumer, Delivery, Layout, Producer};
use ring_fuzz::{Fenced, Spoil};

type Message = [u8; 13];

#[derive(Debug, Arbitrary)]
struct Input {
    log_depth: u8,
    start: u64,
    steps: Vec<Step>,
}

#[derive(Debug, Arbitrary)]
enum Step {
    Spoil(Spoil),
    Push,
    Pop,
    PushSlice(u8),
    PopSlice(u8),
    Drain(u8),
    Reserve { commit: bool },
    Peek { release: bool },
    Look,
    Eager,
    Lazy(u32),
    NewProducer,
    NewConsumer,
    Remake,
}

fuzz_target!(|input: Input| {
    let layout = Layout::<Message>::new(1 << (input.log_depth % 6)).unwrap().start(input.start);
    let region = Fenced::new(layout.bytes());
    layout.init(&region).unwrap();
    // SAFETY: a handle is dropped before its successor attaches, and there is one thread.
    let gone = unsafe { AssumeGone::new() };
    let mut producer = Producer::<Message, _>::attach(&region).ok();
    let mut consumer = Consumer::<Message, _>::attach(&region).ok();
    let mut messages = [[0; 13]; 256];

    for step in &input.steps {
        match step {
            Step::Spoil(spoil) => region.spoil(spoil),
            Step::NewProducer => {
                drop(producer.take());
                producer = Producer::take_over(&region, &gone).ok();
            }
            Step::NewConsumer => {
                drop(consumer.take());
                consumer = Consumer::take_over(&region, &gone).ok();
            }
            Step::Remake => {
                drop((producer.take(), consumer.take()));
                let _ = layout.init_over(&region, &gone);
            }
            step => {
                if let Some(producer) = &mut producer {
                    push(producer, step, &messages);
                }
                if let Some(old) = consumer.take() {
                    consumer = Some(pop(old, step, &mut messages));
                }
            }
        }
    }
});

fn push(producer: &mut Producer<Message, &Fenced>, step: &Step, messages: &[Message]) {
    match step {
        Step::Push => {
            let _ = producer.try_push(messages[0]);
        }
        Step::PushSlice(count) => {
            let _ = producer.push_slice(&messages[..usize::from(*count)]);
        }
        Step::Reserve { commit } => {
            if let Ok(mut grant) = producer.try_reserve() {
                grant.write(&messages[0]);
                if *commit {
                    grant.commit();
                }
            }
        }
        Step::Look => {
            let _ = (producer.len(), producer.is_empty(), producer.is_full(), producer.peer());
        }
        _ => {}
    }
}

fn pop<'a>(
    mut consumer: Consumer<Message, &'a Fenced>,
    step: &Step,
    messages: &mut [Message],
) -> Consumer<Message, &'a Fenced> {
    match step {
        Step::Pop => {
            let _ = consumer.try_pop();
        }
        Step::PopSlice(count) => {
            let _ = consumer.pop_slice(&mut messages[..usize::from(*count)]);
        }
        Step::Drain(count) => consumer.drain(usize::from(*count)).for_each(|_| ()),
        Step::Peek { release } => {
            if let Ok(grant) = consumer.try_peek() {
                grant.read();
                if *release {
                    grant.release();
                }
            }
        }
        Step::Look => {
            let _ = (consumer.len(), consumer.is_empty(), consumer.peer());
        }
        Step::Eager => consumer = consumer.delivery(Delivery::AtMostOnce),
        Step::Lazy(batch) => consumer = consumer.delivery(Delivery::AtLeastOnce { batch: *batch }),
        _ => {}
    }
    consumer
}
