//! Queues, and what their packets do to the program.

use super::*;

/// A queue in a buffer of its own, and where the process has that.
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
        // No packets.
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
fn a_packet_of_a_queue_ends_and_its_signal_wakes_the_program() {
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
    // Not the packet's own queue any more: nothing is taken.
    let queue_id = queue.created.queue_id;
    call(process, Call::DestroyQueue, &mut DestroyQueue { queue_id, pad: 0 }).unwrap();
    queue.word(TestQueue::STRUCTURE + 56).store(2, Ordering::Release);
    assert!(!wait(process, event.event_id).unwrap().0);
    let mut again = DestroyQueue { queue_id, pad: 0 };
    assert_eq!(call(process, Call::DestroyQueue, &mut again), Err(Errno::INVALID));
}

#[test]
fn a_wild_address_in_a_packet_is_a_memory_fault_to_the_program() {
    let process = &process(1);
    let queue = TestQueue::new(process);
    let event = create_event(process, 8);
    let wild = 0x5000_0000 + 4 * PAGE;
    queue.word(TestQueue::RING + 56).store(wild, Ordering::Relaxed);
    queue.word(TestQueue::RING).store(3, Ordering::Release);
    queue.word(TestQueue::STRUCTURE + 56).store(1, Ordering::Release);
    let data = loop {
        if let (true, data) = wait(process, event.event_id).unwrap() {
            break data.memory_exception_data;
        }
    };
    assert_eq!([data.va, data.gpu_id.into()], [wild, u64::from(GPU)]);
    assert_eq!([data.failure.NotPresent, data.failure.ReadOnly], [1, 0]);
}

#[test]
fn a_queue_is_made_only_in_memory_that_the_gpu_has() {
    let process = &process(1);
    let buffer = allocate(process, 0x4000_0000, 2 * PAGE, GTT).unwrap();
    let create = |change: &dyn Fn(&mut CreateQueue)| {
        let mut own = TestQueue::arguments(buffer.va_addr);
        change(&mut own);
        call(process, Call::CreateQueue, &mut own)
    };
    assert_eq!(create(&|_| {}), Err(Errno::INVALID));
    map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
    assert_eq!(create(&|_| {}), Ok(()));
    assert_eq!(create(&|own| own.ring_base_address += PAGE), Ok(()));
    for change in [
        |own: &mut CreateQueue| own.ring_base_address += 2 * PAGE,
        |own: &mut CreateQueue| own.read_pointer_address = 0,
        |own: &mut CreateQueue| own.write_pointer_address += 1,
        |own: &mut CreateQueue| own.ring_size = 100,
        |own: &mut CreateQueue| own.queue_type = 0,
        |own: &mut CreateQueue| own.gpu_id = 0,
    ] {
        assert_eq!(create(&change), Err(Errno::INVALID));
    }
}
