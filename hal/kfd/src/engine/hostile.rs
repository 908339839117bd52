//! What GPU code can do to the engines: queues, packets, signals, descriptors and code with
//! anything in them. The engines must not crash, fail, or write where the GPU may not: around and
//! between what is mapped for it lie canaries.

use super::*;
use crate::map::tests::{ALIAS, give, unchecked_place};
use crate::queue::{Pointers, QueueKind, Ring};
use flipwave_sim::{Execution, Unobserved};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

const PAGE: u64 = 4096;
const CANARY: u8 = 0xc5;
/// Turns of an episode, which is a function of its number.
const TURNS: u32 = 400;
/// Wave instructions of a dispatch.
const LIMIT: u64 = 500;
const NODE: u32 = 1;

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Pages of the process, of which some are the GPU's. They are given back when it is dropped.
struct Host {
    start: u64,
}

impl Host {
    const PAGES: u64 = 64;

    fn new() -> Host {
        let (length, access) = ((Host::PAGES * PAGE) as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, which replaces none.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        // SAFETY: just mapped.
        unsafe { place.cast::<u8>().write_bytes(CANARY, length) };
        Host { start: place as u64 }
    }

    fn page(&self, number: u64) -> u64 {
        self.start + number * PAGE
    }

    /// The first byte of a page that is no canary any more.
    fn damage(&self, page: u64) -> Option<u64> {
        let start = self.page(page);
        // SAFETY: a page of ours, which nobody writes if all is well.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, PAGE as usize) };
        let offset = bytes.iter().position(|byte| *byte != CANARY)?;
        Some(start + offset as u64)
    }

    fn protect(&self, page: u64, access: libc::c_int) {
        // SAFETY: a page of ours, which no GPU has.
        let result = unsafe { libc::mprotect(self.page(page) as *mut _, PAGE as usize, access) };
        assert_eq!(result, 0);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the engines are gone.
        unsafe { libc::munmap(self.start as *mut _, (Host::PAGES * PAGE) as usize) };
    }
}

/// Pages by what is in them: those of the GPU; all others are canaries.
const RINGS: [u64; 2] = [4, 6];
const QUEUES: u64 = 9;
const SIGNALS: [u64; 2] = [12, 13];
/// Where in their page the indices of the queue for copies are.
const SDMA_POINTERS: [u64; 2] = [512, 520];
const DESCRIPTORS: u64 = 16;
const CODE: u64 = 20;
const DATA: [u64; 3] = [28, 29, 40];
/// Comes and goes while the engines work.
const FLEETING: u64 = 50;

/// All pages of the GPU that stay.
fn mapped_pages() -> impl Iterator<Item = u64> {
    let single = [QUEUES, DESCRIPTORS, CODE];
    RINGS.into_iter().chain(single).chain(SIGNALS).chain(DATA)
}

/// Runs a dispatch for a while.
struct Short;

impl Driver for Short {
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance(execution, &mut Unobserved, until)
    }

    fn limit(&self, _: &KernelDispatch) -> u64 {
        LIMIT
    }
}

struct World {
    random: Random,
    machine: Arc<Machine>,
    compute: Compute,
    copies: Arc<Copies>,
    queues: Vec<Arc<Queue>>,
    // After what works with it.
    host: Host,
}

/// Random code has instructions, too, that the embedded GPU does not execute yet or that are not
/// decoded, and says so.
fn fail(error: &DeviceError) {
    let error = error.to_string();
    if ["gap of the embedded GPU", "not decoded"].iter().any(|gap| error.contains(gap)) {
        return;
    }
    panic!("GPU code made the tool fail: {error}");
}

impl World {
    fn new(episode: u64) -> World {
        let target = ["gfx90a", "gfx1030", "gfx906"][episode as usize % 3];
        let target = target.parse().expect("a target");
        let (machine, devices) = Machine::idle(&[target], None).expect("a machine");
        let host = Host::new();
        machine.with_memory(|memory| {
            mapped_pages().for_each(|page| give(memory, host.page(page)));
        });
        let copies = Arc::new(Copies::new(&machine));
        let compute = Compute::new(&machine, &copies, devices, Box::new(Short), fail);
        let random = Random(episode);
        let mut world = World { random, machine, compute, copies, queues: Vec::new(), host };
        world.compute.apply_changes().expect("mapped");
        for _ in 0..8 {
            world.machine.events.create(0, false, false).expect("an event");
        }
        world
    }

    /// Where the GPU has a page, or would have.
    fn gpu(&self, page: u64) -> u64 {
        ALIAS | self.host.page(page)
    }

    /// An address as hostile code would choose it.
    fn address(&mut self) -> u64 {
        let pages: Vec<u64> = mapped_pages().collect();
        let own = self.random.pick(&pages);
        let align = self.random.pick(&[64, 64, 8, 8, 4, 1]);
        let offset = self.random.below(PAGE) / align * align;
        let stray = self.random.below(Host::PAGES);
        match self.random.below(100) {
            0..55 => self.gpu(own) + offset,
            55..65 => (self.gpu(own) + PAGE).wrapping_sub(self.random.below(72)),
            65..75 => self.gpu(stray) + offset,
            75..85 => self.host.page(stray) + offset,
            85..90 => self.gpu(FLEETING) + offset,
            90..93 => self.random.below(PAGE),
            93..96 => u64::MAX - self.random.below(PAGE),
            _ => self.random.word(),
        }
    }

    /// A word that may be an address, a small number or anything.
    fn word(&mut self) -> u64 {
        match self.random.below(10) {
            0..5 => self.address(),
            5..9 => self.random.below(4),
            _ => self.random.word(),
        }
    }

    fn put(&self, gpu: u64, word: u64) {
        let place = unchecked_place(GpuAddress(gpu)).cast::<u64>();
        // SAFETY: in a page of the host's that the GPU may access.
        unsafe { AtomicU64::from_ptr(place) }.store(word, Ordering::Release);
    }

    /// A queue with places of its own, made as the runtime would make it.
    fn queue(&mut self, kind: QueueKind) -> Arc<Queue> {
        let structure = self.gpu(QUEUES);
        let (ring, [read, write]) = match kind {
            QueueKind::Compute => (RINGS[0], [128, 56]),
            QueueKind::Sdma => (RINGS[1], SDMA_POINTERS),
        };
        let [read, write] = [read, write].map(|offset| GpuAddress(structure + offset));
        let (pointers, map) = (Pointers { read, write }, self.machine.map());
        let ring = Ring::new(self.gpu(ring), PAGE).expect("a ring");
        let make = |id| Queue::new(id, NODE, kind, ring, pointers, map);
        let queue = self.machine.add_queue(make).expect("the GPU may access it");
        self.queues.push(Arc::clone(&queue));
        queue
    }

    fn drop_queues(&mut self) {
        for queue in std::mem::take(&mut self.queues) {
            let id = queue.id;
            drop(queue);
            self.machine.remove_queue(id);
        }
    }

    fn fill_signals(&mut self) {
        for page in SIGNALS {
            for index in 0..PAGE / 64 {
                let signal = self.gpu(page) + 64 * index;
                let value = self.random.below(2);
                self.put(signal + 8, value);
                let mailbox = if self.random.chance(40) { 0 } else { self.address() };
                self.put(signal + 16, mailbox);
                let event = self.random.below(12);
                self.put(signal + 24, event);
            }
        }
    }

    fn fill_code(&mut self) {
        const END: u64 = 0xbf81_0000_bf81_0000;
        for index in 0..PAGE / 8 {
            let word = if self.random.chance(40) { END } else { self.random.word() };
            self.put(self.gpu(CODE) + 8 * index, word);
        }
        for index in 0..PAGE / 64 {
            let descriptor = self.gpu(DESCRIPTORS) + 64 * index;
            let sizes = if self.random.chance(95) {
                self.random.below(256) << 32
            } else {
                self.random.word()
            };
            let lds = self.random.below(64);
            self.put(descriptor, sizes & !0xffff_ffff | lds);
            let entry = match self.random.below(10) {
                0..8 => self.gpu(CODE) + 4 * self.random.below(PAGE / 4),
                _ => self.address(),
            };
            self.put(descriptor + 16, entry.wrapping_sub(descriptor));
            for offset in [8, 24, 32, 40, 48, 56] {
                let word = if self.random.chance(50) { 0 } else { self.random.word() };
                self.put(descriptor + offset, word);
            }
        }
    }

    fn fill_compute(&mut self, queue: &Queue) {
        let ring = self.gpu(RINGS[0]);
        for slot in 0..PAGE / 64 {
            let packet = ring + 64 * slot;
            let kind = match self.random.below(100) {
                0..40 => KernelPacketType::KERNEL,
                40..55 => 3,
                55..70 => 5,
                70..85 => 2 << 16,
                85..88 => 1,
                _ => self.random.below(1 << 24),
            };
            let sizes = [1, 64, 64, 1024, 0, 65535].map(|size: u64| size);
            let dimensions = self.random.below(4) << 16;
            let workgroup = self.random.pick(&sizes) << 32 | self.random.pick(&[1, 1, 2]) << 48;
            let is_kernel = kind == KernelPacketType::KERNEL;
            let first = if is_kernel { kind | dimensions | workgroup } else { kind };
            self.put(packet, first);
            for index in 1..8 {
                let word = self.word();
                self.put(packet + 8 * index, word);
            }
            if is_kernel && self.random.chance(80) {
                let grid = 1 + self.random.below(300);
                self.put(packet + 8, 1 | grid << 32);
                let second = self.random.pick(&[0, 1, 3, 0xffff_ffff]) | 1 << 32;
                self.put(packet + 16, second);
                let sizes = self.random.below(128) | self.random.below(4096) << 32;
                self.put(packet + 24, sizes);
                let kernel = self.gpu(DESCRIPTORS) + 64 * self.random.below(PAGE / 64);
                self.put(packet + 32, kernel);
            }
        }
        let structure = queue.structure().0;
        let read = match self.random.below(20) {
            0 => self.random.word(),
            1 => u64::MAX,
            _ => self.random.below(1000),
        };
        let ahead = match self.random.below(20) {
            0 => self.random.word(),
            _ => self.random.below(64),
        };
        self.put(structure + 128, read);
        self.put(structure + 56, read.wrapping_add(ahead));
        let inactive = self.address();
        self.put(structure + 192, inactive);
    }

    fn fill_sdma(&mut self, queue: &Queue) {
        let ring = self.gpu(RINGS[1]);
        let [read_place, write_place] = SDMA_POINTERS.map(|offset| self.gpu(QUEUES) + offset);
        if self.random.chance(5) {
            let word = self.random.word();
            self.put(read_place, word);
        }
        let mut at = queue.read(&queue.view()).expect("the GPU's");
        let mut put = |word: u32| {
            let place = unchecked_place(GpuAddress(ring + at % PAGE / 4 * 4)).cast::<u32>();
            // SAFETY: in the ring.
            unsafe { place.write_unaligned(word) };
            at = at.wrapping_add(4);
        };
        for _ in 0..8 {
            let [from, to] = [self.address(), self.address()];
            let bytes = self.random.pick(&[1, 4, 63, 64, 4095, 4096, 8192, 0x3f_ffff]) as u32;
            let halves = |address: u64| [address as u32, (address >> 32) as u32];
            let [value, mask] = [self.random.word() as u32, self.random.word() as u32];
            let ([a, b], [c, d]) = (halves(from), halves(to));
            let packet: Vec<u32> = match self.random.below(11) {
                0 | 1 => vec![1, bytes - 1, 0, a, b, c, d],
                2 => {
                    // Some rows and slices, with small pitches, so that they may all be there.
                    let small = self.random.below(4) as u32;
                    let offset = value & 0x0007_0007;
                    let pitch = (mask & 0x1f) << 13 | value >> 28 & 1;
                    let extent = [value & 0x0007_003f, small];
                    let head = 1 | 4 << 8 | (value & 7) << 29;
                    let (e, slice) = (extent, mask & 0xff);
                    vec![head, a, b, offset, pitch, slice, c, d, offset, pitch, slice, e[0], e[1]]
                }
                3 => vec![5, a, b, value],
                4 => vec![6, value & 0xf],
                5 => vec![8 | (value | 1 << 3) << 28, a, b, value, mask, 0],
                6 => vec![10 | 47 << 25, a, b, value, mask, 0, 0, 0],
                7 => vec![11, a, b, value, bytes],
                8 => vec![13, a, b],
                9 => vec![(value & 7) << 16, 0],
                _ => vec![value, mask, a, b],
            };
            packet.into_iter().for_each(&mut put);
        }
        let written = if self.random.chance(5) { self.random.word() } else { at };
        self.put(write_place, written);
    }

    fn turn(&mut self) {
        let random = self.random.below(8);
        if random == 0 || self.queues.iter().any(|queue| queue.is_over()) {
            self.drop_queues();
        }
        if self.queues.is_empty() {
            self.fill_signals();
            self.fill_code();
            let compute = self.queue(QueueKind::Compute);
            self.fill_compute(&compute);
            let sdma = self.queue(QueueKind::Sdma);
            self.fill_sdma(&sdma);
        }
        if self.random.chance(50) {
            let page = self.random.pick(&[RINGS[0], RINGS[1], QUEUES, DESCRIPTORS, SIGNALS[0]]);
            let (place, word) = (self.gpu(page) + 8 * self.random.below(PAGE / 8), self.word());
            self.put(place, word);
        }
        self.copies.advance();
        self.compute.advance();
    }

    /// The first byte that something was written to though it is not the GPU's.
    fn damage(&self) -> Option<u64> {
        let own: Vec<u64> = mapped_pages().chain([FLEETING]).collect();
        (0..Host::PAGES).filter(|page| !own.contains(page)).find_map(|page| self.host.damage(page))
    }

    /// Has the engines work for a while; `Err` with what is damaged.
    fn episode(&mut self) -> Result<(), u64> {
        for _ in 0..TURNS {
            self.turn();
            if let Some(address) = self.damage() {
                return Err(address);
            }
        }
        Ok(())
    }
}

struct KernelPacketType;

impl KernelPacketType {
    const KERNEL: u64 = flipwave_device::KernelPacket::TYPE as u64;
}

/// An episode, during which another thread gives memory to the GPU and takes it away: what is given
/// back to the system then would end the process if anything still touched it.
fn run(episode: u64) {
    let mut world = World::new(episode);
    let (machine, is_over) = (Arc::clone(&world.machine), AtomicBool::new(false));
    let start = world.host.start;
    std::thread::scope(|scope| {
        let coming_and_going = scope.spawn(|| {
            let host = std::mem::ManuallyDrop::new(Host { start });
            while !is_over.load(Ordering::Acquire) {
                machine.with_memory(|memory| give(memory, host.page(FLEETING)));
                std::thread::sleep(Duration::from_micros(200));
                let address = ALIAS | host.page(FLEETING);
                machine.with_memory(|memory| memory.blocks.remove(&address)).expect("given");
                host.protect(FLEETING, libc::PROT_NONE);
                std::thread::sleep(Duration::from_micros(50));
                host.protect(FLEETING, libc::PROT_READ | libc::PROT_WRITE);
            }
        });
        let result = catch_unwind(AssertUnwindSafe(|| world.episode()));
        is_over.store(true, Ordering::Release);
        while !coming_and_going.is_finished() {
            world.compute.apply_changes().expect("applied");
            std::thread::yield_now();
        }
        match result {
            Ok(Ok(())) => {}
            Ok(Err(address)) => {
                panic!("episode {episode}: {address:#x} was written to, which is not the GPU's");
            }
            Err(panic) => {
                eprintln!("episode {episode}");
                resume_unwind(panic);
            }
        }
    });
    world.drop_queues();
}

/// In this episode the write pointer of a queue of copies becomes a random number.
#[test]
fn a_queue_of_copies_that_says_more_than_it_holds_is_stopped() {
    run(83);
}

/// For as many seconds as FLIPWAVE_FUZZ_SECONDS says from episode FLIPWAVE_FUZZ_EPISODE on, or a
/// few episodes; `make fuzz-queues` runs it for ten minutes.
#[test]
fn hostile_queues_neither_crash_the_engines_nor_make_them_write_elsewhere() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FLIPWAVE_FUZZ_EPISODE").unwrap_or(0);
    let Some(seconds) = number("FLIPWAVE_FUZZ_SECONDS") else {
        return (first..first + 6).for_each(run);
    };
    let clock = Instant::now();
    let mut episode = first;
    while clock.elapsed() < Duration::from_secs(seconds) {
        // Where it crashes, this is what to begin with.
        eprint!("\repisode {episode}");
        run(episode);
        episode += 1;
    }
    let turns = (episode - first) * u64::from(TURNS);
    eprintln!("\r{} episodes, {turns} turns, {} s", episode - first, clock.elapsed().as_secs());
}

/// Records its calls, runs nothing, and has a packet changed while it is made ready.
struct Noting {
    calls: Arc<Mutex<Vec<&'static str>>>,
    /// Where a word is written, if one is.
    changed: Option<u64>,
    /// Time that each slice of the dispatch takes.
    slice: Duration,
}

impl Driver for Noting {
    fn begin(&mut self, _: &Machine, _: &KernelDispatch) -> Result<(), DeviceError> {
        self.calls.lock().unwrap().push("begin");
        if let Some(place) = self.changed {
            // SAFETY: in a page of the host's that the GPU may access.
            unsafe { unchecked_place(GpuAddress(place)).cast::<u64>().write_volatile(0x1000) };
        }
        Ok(())
    }

    fn advance(
        &mut self,
        _: &mut EmbeddedGpu,
        _: &mut Execution,
        _: u64,
    ) -> Result<Progress, DeviceError> {
        std::thread::sleep(self.slice);
        Ok(Progress::Paused)
    }

    fn abandon(&mut self) {
        self.calls.lock().unwrap().push("abandon");
    }
}

impl World {
    /// Creates a queue with the packet of a kernel.
    fn queue_with_kernel(&mut self) -> Arc<Queue> {
        let queue = self.queue(QueueKind::Compute);
        let (ring, descriptor) = (self.gpu(RINGS[0]), self.gpu(DESCRIPTORS));
        for offset in (0..64).step_by(8) {
            self.put(ring + offset, 0);
            self.put(descriptor + offset, 0);
        }
        self.put(descriptor + 16, self.gpu(CODE).wrapping_sub(descriptor));
        self.put(ring, KernelPacketType::KERNEL | 1 << 16 | 64 << 32 | 1 << 48);
        self.put(ring + 8, 1 | 64 << 32);
        self.put(ring + 16, 1 | 1 << 32);
        self.put(ring + 32, descriptor);
        let structure = queue.structure().0;
        self.put(structure + 128, 0);
        self.put(structure + 56, 1);
        self.put(structure + 192, 0);
        queue
    }
}

#[test]
fn a_driver_learns_that_a_dispatch_has_no_end() {
    for is_changed in [false, true] {
        let mut world = World::new(0);
        let queue = world.queue_with_kernel();
        let calls = Arc::<Mutex<Vec<&'static str>>>::default();
        let changed = is_changed.then_some(world.gpu(RINGS[0]) + 32);
        let slice = Duration::ZERO;
        world.compute.driver = Box::new(Noting { calls: Arc::clone(&calls), changed, slice });
        let packet = aql::next(&queue).expect("a packet");
        queue.destroy();
        world.compute.take(&queue, &packet).expect("no failure");
        assert_eq!(*calls.lock().unwrap(), ["begin", "abandon"], "changed: {is_changed}");
    }
}

#[test]
fn removing_a_queue_waits_until_its_kernel_is_abandoned() {
    let mut world = World::new(0);
    let queue = world.queue_with_kernel();
    let calls = Arc::<Mutex<Vec<&'static str>>>::default();
    let slice = Duration::from_millis(50);
    let driver = Noting { calls: Arc::clone(&calls), changed: None, slice };
    world.compute.driver = Box::new(driver);
    let machine = Arc::clone(&world.machine);
    let compute = &mut world.compute;
    std::thread::scope(|scope| {
        let engine = scope.spawn(move || compute.advance());
        while calls.lock().unwrap().is_empty() {
            assert!(!engine.is_finished(), "no kernel was started");
            std::thread::yield_now();
        }
        assert!(machine.remove_queue(queue.id));
        calls.lock().unwrap().push("removed");
        assert!(engine.join().expect("no panic"), "a packet was taken");
    });
    assert_eq!(*calls.lock().unwrap(), ["begin", "abandon", "removed"]);
    assert!(!machine.remove_queue(queue.id), "the queue is gone");
    assert!(!world.compute.advance(), "nothing is left to execute");
}

/// The variable that makes a process check nothing.
const UNCHECKED: &str = "FLIPWAVE_TEST_UNCHECKED";

/// Not a test: what the test below runs in a process of its own as a negative control.
#[test]
#[ignore = "another test runs it, and it crashes"]
fn unchecked() {
    if std::env::var_os(UNCHECKED).is_none() {
        return;
    }
    crate::map::tests::CHECKS_NOTHING.store(true, Ordering::Relaxed);
    (0..30).for_each(run);
}

#[test]
fn hostile_queues_are_found_out_where_addresses_are_not_checked() {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program);
    child.args(["--exact", "--ignored", "engine::hostile::unchecked"]).env(UNCHECKED, "1");
    let output = child.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let is_found = output.status.signal().is_some() || text.contains("was written to");
    assert!(text.contains("running 1 test") && is_found, "{:?}\n{text}", output.status);
}
