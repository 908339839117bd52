//! Tests of queues and of the effects of their packets.

use super::*;

/// A queue in its own buffer, and the buffer's address in this process.
struct TestQueue {
    buffer: AllocMemory,
    host: u64,
    created: CreateQueue,
}

impl TestQueue {
    const RING: u64 = 0;
    const STRUCTURE: u64 = PAGE;
    const SIGNAL: u64 = PAGE + 512;

    fn arguments(address: u64) -> CreateQueue {
        CreateQueue {
            ring_base_address: address + TestQueue::RING,
            ring_size: PAGE as u32,
            read_pointer_address: address + TestQueue::STRUCTURE + 128,
            write_pointer_address: address + TestQueue::STRUCTURE + 56,
            gpu_id: GPU,
            queue_type: 2,
            ..zero()
        }
    }

    fn new(process: &Process) -> TestQueue {
        let buffer = allocate(process, 0x4000_0000, 2 * PAGE, GTT).unwrap();
        map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
        let host = process.machine.view(1).within(buffer.va_addr..buffer.va_addr + 1)[0].1;
        // Fills the ring with invalid packets.
        for slot in 0..PAGE / 64 {
            // SAFETY: in the buffer, at a multiple of 64.
            unsafe { AtomicU16::from_ptr((host + 64 * slot) as *mut u16) }
                .store(1, Ordering::Release);
        }
        let mut created = TestQueue::arguments(buffer.va_addr);
        call(process, Call::CreateQueue, &mut created).unwrap();
        TestQueue { buffer, host, created }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: in the buffer, at a multiple of 8.
        unsafe { AtomicU64::from_ptr((self.host + offset) as *mut u64) }
    }
}

#[test]
fn a_completed_packet_signals_its_event_until_the_queue_is_destroyed() {
    let process = &process(1);
    let queue = TestQueue::new(process);
    let event = create_event(process, 0);
    let signal = queue.buffer.va_addr + TestQueue::SIGNAL;
    let mailbox = TestQueue::SIGNAL + 256;
    queue.word(TestQueue::SIGNAL + 8).store(1, Ordering::Relaxed);
    queue.word(TestQueue::SIGNAL + 16).store(queue.buffer.va_addr + mailbox, Ordering::Relaxed);
    queue.word(TestQueue::SIGNAL + 24).store(event.event_id.into(), Ordering::Relaxed);
    assert!(!wait(process, event.event_id).unwrap().0);
    // A barrier packet that waits for nothing.
    const BARRIER_AND: u64 = 3;
    queue.word(TestQueue::RING + 56).store(signal, Ordering::Relaxed);
    queue.word(TestQueue::RING).store(BARRIER_AND, Ordering::Release);
    queue.word(TestQueue::STRUCTURE + 56).store(1, Ordering::Release);
    while !wait(process, event.event_id).unwrap().0 {}
    assert_eq!(queue.word(TestQueue::SIGNAL + 8).load(Ordering::Acquire), 0);
    assert_eq!(queue.word(mailbox).load(Ordering::Acquire), u64::from(event.event_id));
    assert_eq!(queue.word(TestQueue::STRUCTURE + 128).load(Ordering::Acquire), 1);
    // No packet is taken from a destroyed queue.
    let queue_id = queue.created.queue_id;
    call(process, Call::DestroyQueue, &mut DestroyQueue { queue_id, pad: 0 }).unwrap();
    queue.word(TestQueue::STRUCTURE + 56).store(2, Ordering::Release);
    assert!(!wait(process, event.event_id).unwrap().0);
    let mut again = DestroyQueue { queue_id, pad: 0 };
    assert_eq!(call(process, Call::DestroyQueue, &mut again), Err(Errno::INVALID));
}

#[test]
fn an_unmapped_signal_is_a_memory_fault() {
    let process = &process(1);
    let queue = TestQueue::new(process);
    let event = create_event(process, 8);
    let unmapped = 0x5000_0000 + 4 * PAGE;
    queue.word(TestQueue::RING + 56).store(unmapped, Ordering::Relaxed);
    queue.word(TestQueue::RING).store(3, Ordering::Release);
    queue.word(TestQueue::STRUCTURE + 56).store(1, Ordering::Release);
    let data = loop {
        if let (true, data) = wait(process, event.event_id).unwrap() {
            break data.memory_exception_data;
        }
    };
    assert_eq!([data.va, data.gpu_id.into()], [unmapped, u64::from(GPU)]);
    assert_eq!([data.failure.NotPresent, data.failure.ReadOnly], [1, 0]);
}

#[test]
fn queues_in_inaccessible_memory_are_refused() {
    let process = &process(1);
    let buffer = allocate(process, 0x4000_0000, 2 * PAGE, GTT).unwrap();
    let create = |change: &dyn Fn(&mut CreateQueue)| {
        let mut args = TestQueue::arguments(buffer.va_addr);
        change(&mut args);
        call(process, Call::CreateQueue, &mut args)
    };
    assert_eq!(create(&|_| {}), Err(Errno::INVALID));
    map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
    assert_eq!(create(&|_| {}), Ok(()));
    assert_eq!(create(&|args| args.ring_base_address += PAGE), Ok(()));
    for change in [
        |args: &mut CreateQueue| args.ring_base_address += 2 * PAGE,
        |args: &mut CreateQueue| args.read_pointer_address = 0,
        |args: &mut CreateQueue| args.write_pointer_address += 1,
        |args: &mut CreateQueue| args.ring_size = 100,
        |args: &mut CreateQueue| args.queue_type = 0,
        |args: &mut CreateQueue| args.gpu_id = 0,
    ] {
        assert_eq!(create(&change), Err(Errno::INVALID));
    }
}
