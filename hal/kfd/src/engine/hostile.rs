//! Fuzzing of the engines with everything that GPU code can write: random queues, packets, signals,
//! descriptors and code. The engines must not crash, fail, or write to memory that the GPU may not
//! access: canaries lie around and between the GPU's pages.

use super::compute::{ComputeEngine, Task};
use super::copies::CopyEngine;
use super::gpu::Gpus;
use super::turns::Turns;
use crate::aql;
use crate::dispatch::{Board, CountedKernels, DispatchDriver, KernelDispatch};
use crate::events::ResetMode;
use crate::machine::Machine;
use crate::map::GpuAddress;
use crate::map::tests::{ALIAS, SKIP_CHECKS, map_page, unchecked_pointer};
use crate::memory::PAGE;
use crate::pm4::LaunchRecord;
use crate::queue::{Pointers, Queue, QueueKind, Ring};
use flipwave_device::{DeviceError, KernelPacket};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CANARY: u8 = 0xc5;
/// Steps of an episode. An episode is a function of its number.
const STEPS: u32 = 400;
/// Largest number of wave instructions of a dispatch.
const LIMIT: u64 = 500;
/// Node of the GPU.
const NODE: u32 = 1;
/// Packet type of a kernel dispatch.
const KERNEL: u64 = KernelPacket::TYPE as u64;

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

/// Pages of the process, some of which the GPU may access. They are unmapped on drop.
struct Pages {
    start: u64,
}

impl Pages {
    const COUNT: u64 = 64;

    fn new() -> Pages {
        let (length, access) = ((Pages::COUNT * PAGE) as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, which replaces none.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: just mapped.
        unsafe { start.cast::<u8>().write_bytes(CANARY, length) };
        Pages { start: start as u64 }
    }

    fn address(&self, number: u64) -> u64 {
        self.start + number * PAGE
    }

    /// Address of the first overwritten canary of a page.
    fn overwritten(&self, page: u64) -> Option<u64> {
        let start = self.address(page);
        // SAFETY: a mapped page, which nobody writes unless the test fails.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, PAGE as usize) };
        let offset = bytes.iter().position(|byte| *byte != CANARY)?;
        Some(start + offset as u64)
    }

    fn protect(&self, page: u64, access: libc::c_int) {
        // SAFETY: a mapped page that no GPU may access.
        let result = unsafe { libc::mprotect(self.address(page) as *mut _, PAGE as usize, access) };
        assert_eq!(result, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the engines are gone.
        unsafe { libc::munmap(self.start as *mut _, (Pages::COUNT * PAGE) as usize) };
    }
}

// Numbers of the pages that the GPU may access. All other pages are canaries.
/// Rings of the queues of AQL, SDMA and PM4 packets.
const RINGS: [u64; 3] = [4, 6, 14];
const QUEUES: u64 = 9;
const SIGNALS: [u64; 2] = [12, 13];
/// Offsets of the indices of the SDMA queue in the page of queues.
const SDMA_POINTERS: [u64; 2] = [512, 520];
/// Offsets of the indices of the queue of PM4 packets in the page of queues.
const PM4_POINTERS: [u64; 2] = [768, 776];
/// Offset of the record of launches in the page of queues.
const RECORD: u64 = 1024;
const DESCRIPTORS: u64 = 16;
const CODE: u64 = 20;
const DATA: [u64; 3] = [28, 29, 40];
/// A page that is mapped and unmapped while the engines work.
const VOLATILE: u64 = 50;

/// All pages that stay mapped for the GPU.
fn mapped_pages() -> impl Iterator<Item = u64> {
    let single = [QUEUES, DESCRIPTORS, CODE];
    RINGS.into_iter().chain(single).chain(SIGNALS).chain(DATA)
}

/// Runs each dispatch up to [`LIMIT`].
struct ShortRuns;

impl DispatchDriver for ShortRuns {
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

/// First dword of a PM4 packet with a body of `dwords` dwords.
fn pm4_header(opcode: u32, dwords: usize) -> u32 {
    3 << 30 | (dwords as u32 - 1) << 16 | opcode << 8
}

/// A machine whose engines are called by the test.
struct Fuzzer {
    random: Random,
    machine: Arc<Machine>,
    gpus: Arc<Turns<Gpus>>,
    compute: ComputeEngine,
    copies: Arc<CopyEngine>,
    queues: Vec<Arc<Queue>>,
    // Dropped after the engines, which access it.
    pages: Pages,
}

/// Panics, except for instructions that the embedded GPU does not support or decode: random code
/// has some.
fn fail(error: &DeviceError) {
    let error = error.to_string();
    if ["gap of the embedded GPU", "not decoded"].iter().any(|gap| error.contains(gap)) {
        return;
    }
    panic!("an engine failed: {error}");
}

impl Fuzzer {
    fn new(episode: u64) -> Fuzzer {
        let targets = ["gfx90a", "gfx1030", "gfx906", "gfx1100", "gfx942"];
        let target = targets[episode as usize % targets.len()];
        let target = target.parse().expect("a target");
        let (machine, devices) =
            Machine::without_engines(std::slice::from_ref(&target), None).expect("a machine");
        let pages = Pages::new();
        machine.with_memory(|memory| {
            mapped_pages().for_each(|page| map_page(memory, pages.address(page)));
        });
        let copies = Arc::new(CopyEngine::new(&machine));
        let gpus = Arc::new(Turns::new(Gpus::new(devices)));
        let board = Board { target, driver: Box::new(ShortRuns), counted: CountedKernels::All };
        let compute = ComputeEngine::new(&machine, &copies, &gpus, NODE, board, fail);
        let random = Random(episode);
        let queues = Vec::new();
        let fuzzer = Fuzzer { random, machine, gpus, compute, copies, queues, pages };
        fuzzer.apply_changes();
        for _ in 0..8 {
            fuzzer.machine.events.create(0, ResetMode::Auto).expect("an event");
        }
        fuzzer
    }

    fn apply_changes(&self) {
        self.gpus.take().apply_changes(&self.machine).expect("applied");
    }

    /// GPU address of a page, whether it is mapped for the GPU or not.
    fn gpu(&self, page: u64) -> u64 {
        ALIAS | self.pages.address(page)
    }

    /// A random address: valid, near a boundary, unmapped, or any number.
    fn address(&mut self) -> u64 {
        let pages: Vec<u64> = mapped_pages().collect();
        let mapped = self.random.pick(&pages);
        let align = self.random.pick(&[64, 64, 8, 8, 4, 1]);
        let offset = self.random.below(PAGE) / align * align;
        let any = self.random.below(Pages::COUNT);
        match self.random.below(100) {
            0..55 => self.gpu(mapped) + offset,
            55..65 => (self.gpu(mapped) + PAGE).wrapping_sub(self.random.below(72)),
            65..75 => self.gpu(any) + offset,
            75..85 => self.pages.address(any) + offset,
            85..90 => self.gpu(VOLATILE) + offset,
            90..93 => self.random.below(PAGE),
            93..96 => u64::MAX - self.random.below(PAGE),
            _ => self.random.word(),
        }
    }

    /// A random word: an address, a small number, or any number.
    fn word(&mut self) -> u64 {
        match self.random.below(10) {
            0..5 => self.address(),
            5..9 => self.random.below(4),
            _ => self.random.word(),
        }
    }

    fn put(&self, gpu: u64, word: u64) {
        let pointer = unchecked_pointer(GpuAddress(gpu)).cast::<u64>();
        // SAFETY: in a page that the GPU may access.
        unsafe { AtomicU64::from_ptr(pointer) }.store(word, Ordering::Release);
    }

    /// Creates a queue as the runtime does.
    fn create_queue(&mut self, kind: QueueKind) -> Arc<Queue> {
        let page = self.gpu(QUEUES);
        let (ring, [read, write]) = match kind {
            QueueKind::Compute => (RINGS[0], [128, 56]),
            QueueKind::Sdma => (RINGS[1], SDMA_POINTERS),
            QueueKind::Pm4 => (RINGS[2], PM4_POINTERS),
        };
        let [read, write] = [read, write].map(|offset| GpuAddress(page + offset));
        let (pointers, map) = (Pointers { read, write }, self.machine.map());
        let record = LaunchRecord::new(page + RECORD, 256);
        let ring = Ring::new(self.gpu(ring), PAGE).expect("a ring");
        let make = |id| Queue::new(id, NODE, kind, ring, pointers, record, map);
        let queue = self.machine.add_queue(make).expect("the GPU may access it");
        self.queues.push(Arc::clone(&queue));
        queue
    }

    fn remove_queues(&mut self) {
        for queue in std::mem::take(&mut self.queues) {
            self.machine.remove_queue(queue.id);
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
                0..40 => KERNEL,
                40..55 => 3,
                55..65 => 5,
                65..75 => 2 << 16,
                75..85 => 1 << 16,
                85..88 => 1,
                _ => self.random.below(1 << 24),
            };
            let sizes = [1, 64, 64, 1024, 0, 65535].map(|size: u64| size);
            let dimensions = self.random.below(4) << 16;
            let workgroup = self.random.pick(&sizes) << 32 | self.random.pick(&[1, 1, 2]) << 48;
            let is_kernel = kind == KERNEL;
            let first = if is_kernel { kind | dimensions | workgroup } else { kind };
            self.put(packet, first);
            for index in 1..8 {
                let word = self.word();
                self.put(packet + 8 * index, word);
            }
            if kind == 1 << 16 && self.random.chance(90) {
                let [head, low, high, control] = self.indirect_buffer();
                let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
                self.put(packet, kind | u64::from(head) << 32);
                self.put(packet + 8, pair(low, high));
                self.put(packet + 16, pair(control, 10));
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
        let structure = queue.amd_queue().0;
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

    /// A PM4 packet that names an indirect buffer, which mostly has packets.
    fn indirect_buffer(&mut self) -> [u32; 4] {
        let start = if self.random.chance(80) { self.gpu(DATA[0]) } else { self.address() };
        let dwords = self.random.pick(&[0u32, 1, 40, 200, 1024, 0xf_ffff]);
        let valid = if self.random.chance(95) { 1 << 23 } else { 0 };
        [pm4_header(0x3f, 3), start as u32, (start >> 32) as u32, dwords | valid]
    }

    /// A random PM4 packet, or the packets of a launch.
    fn pm4_packet(&mut self) -> Vec<u32> {
        let address = self.address();
        let (low, high) = (address as u32, (address >> 32) as u32);
        let [value, mask] = [self.random.word() as u32, self.random.word() as u32];
        let packet = |opcode, body: &[u32]| [&[pm4_header(opcode, body.len())], body].concat();
        match self.random.below(13) {
            0..4 => self.pm4_launch(),
            4 => {
                let info = self.random.pick(&[0x10u32, 0x10, 0x14, 0x15, 0x13, 0x43, 3]);
                packet(0x3c, &[info, low, high, value & 3, mask, 4])
            }
            5 | 6 => {
                let selectors = self.random.pick(&[0u32, 1, 1, 2, 3, 7]);
                let interrupt = self.random.below(5) as u32;
                let selectors = selectors << 29 | interrupt << 24;
                packet(0x49, &[0x514, selectors, low, high, value & 15, 0, mask & 15])
            }
            7 => self.indirect_buffer().to_vec(),
            8 => {
                let dies = self.random.below(4) as u32;
                packet(0x23, &[dies << 24 | value & 15])
            }
            9 => packet(0x40, &[2 << 8 | 4, 0x100, 0, low, high]),
            10 => packet(0x10, &vec![0; self.random.below(20) as usize + 1]),
            11 => packet(0x76, &[value & 0x4ff, mask, value]),
            _ => vec![value, mask, low],
        }
    }

    /// Packets that set the registers of a launch and start it.
    fn pm4_launch(&mut self) -> Vec<u32> {
        let entry = match self.random.below(10) {
            0..8 => self.gpu(CODE) + 256 * self.random.below(PAGE / 256),
            _ => self.address(),
        };
        let any = |random: &mut Random, mask: u64| {
            if random.chance(90) { (random.word() & mask) as u32 } else { random.word() as u32 }
        };
        let registers = [
            (0x20c, vec![(entry >> 8) as u32, (entry >> 40) as u32]),
            // Registers, user SGPRs, IDs and scratch.
            (0x212, vec![any(&mut self.random, 0x3f), any(&mut self.random, 0x1fff | 7 << 15)]),
            (0x218, vec![any(&mut self.random, 7 << 12)]),
            (0x207, [1u32, 64, 1].map(|size| self.random.pick(&[1u32, size, size, 0])).to_vec()),
            (0x240, (0..16).map(|_| self.word() as u32).collect()),
        ];
        let mut packets = Vec::new();
        for (first, values) in registers {
            packets.push(pm4_header(0x76, values.len() + 1));
            packets.push(first);
            packets.extend(values);
        }
        let count = self.random.pick(&[1, 2, 3, 0, u32::MAX]);
        let initiator = self.random.pick(&[5u32, 5, 5, 0x8005, 1, 4, 7]);
        packets.extend([pm4_header(0x15, 4), count, 1, 1, initiator]);
        packets
    }

    /// Writes PM4 packets to a page, and returns their number of dwords.
    fn fill_pm4_page(&mut self, page: u64) -> u64 {
        let mut dwords = Vec::new();
        while dwords.len() < (PAGE / 4 - 200) as usize {
            dwords.extend(self.pm4_packet());
        }
        dwords.truncate((PAGE / 4) as usize);
        for (dword, address) in dwords.iter().zip((self.gpu(page)..).step_by(4)) {
            let pointer = unchecked_pointer(GpuAddress(address)).cast::<u32>();
            // SAFETY: in a page that the GPU may access.
            unsafe { pointer.write(*dword) };
        }
        dwords.len() as u64
    }

    fn fill_pm4(&mut self) {
        self.fill_pm4_page(DATA[0]);
        let mut written = self.fill_pm4_page(RINGS[2]);
        let [read_index, write_index] = PM4_POINTERS.map(|offset| self.gpu(QUEUES) + offset);
        let read = match self.random.below(20) {
            0 => self.random.word(),
            _ => self.random.below(3) * (PAGE / 4),
        };
        if self.random.chance(5) {
            written = self.random.word();
        }
        self.put(read_index, read);
        self.put(write_index, read.wrapping_add(written));
    }

    fn fill_sdma(&mut self, queue: &Queue) {
        let ring = self.gpu(RINGS[1]);
        let [read_index, write_index] = SDMA_POINTERS.map(|offset| self.gpu(QUEUES) + offset);
        if self.random.chance(5) {
            let word = self.random.word();
            self.put(read_index, word);
        }
        let mut end = queue.read_index(&queue.view()).expect("an accessible index");
        let mut put = |word: u32| {
            let pointer = unchecked_pointer(GpuAddress(ring + end % PAGE / 4 * 4)).cast::<u32>();
            // SAFETY: in the ring.
            unsafe { pointer.write_unaligned(word) };
            end = end.wrapping_add(4);
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
                    // Few rows and slices, and small pitches, so that all of them may be mapped.
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
        let written = if self.random.chance(5) { self.random.word() } else { end };
        self.put(write_index, written);
    }

    fn step(&mut self) {
        let random = self.random.below(8);
        if random == 0 || self.queues.iter().any(|queue| queue.is_closed()) {
            self.remove_queues();
        }
        if self.queues.is_empty() {
            self.fill_signals();
            self.fill_code();
            let compute = self.create_queue(QueueKind::Compute);
            self.fill_compute(&compute);
            let sdma = self.create_queue(QueueKind::Sdma);
            self.fill_sdma(&sdma);
            self.create_queue(QueueKind::Pm4);
            self.fill_pm4();
        }
        if self.random.chance(50) {
            let pages = [RINGS[0], RINGS[1], RINGS[2], QUEUES, DESCRIPTORS, SIGNALS[0], DATA[0]];
            let page = self.random.pick(&pages);
            let (address, word) = (self.gpu(page) + 8 * self.random.below(PAGE / 8), self.word());
            self.put(address, word);
        }
        self.copies.advance();
        self.compute.advance();
    }

    /// Address of the first overwritten canary.
    fn overwritten(&self) -> Option<u64> {
        let writable: Vec<u64> = mapped_pages().chain([VOLATILE]).collect();
        let mut canaries = (0..Pages::COUNT).filter(|page| !writable.contains(page));
        canaries.find_map(|page| self.pages.overwritten(page))
    }

    /// Runs an episode; `Err` with the address of an overwritten canary.
    fn episode(&mut self) -> Result<(), u64> {
        for _ in 0..STEPS {
            self.step();
            if let Some(address) = self.overwritten() {
                return Err(address);
            }
        }
        Ok(())
    }
}

/// Runs an episode, during which another thread maps and unmaps a page for the GPU. While unmapped,
/// the page is inaccessible: a late access would crash.
fn run(episode: u64) {
    let mut fuzzer = Fuzzer::new(episode);
    let (machine, is_over) = (Arc::clone(&fuzzer.machine), AtomicBool::new(false));
    let start = fuzzer.pages.start;
    std::thread::scope(|scope| {
        let mapper = scope.spawn(|| {
            let pages = std::mem::ManuallyDrop::new(Pages { start });
            while !is_over.load(Ordering::Acquire) {
                machine.with_memory(|memory| map_page(memory, pages.address(VOLATILE)));
                std::thread::sleep(Duration::from_micros(200));
                let address = ALIAS | pages.address(VOLATILE);
                machine.with_memory(|memory| memory.blocks.remove(&address)).expect("mapped");
                pages.protect(VOLATILE, libc::PROT_NONE);
                std::thread::sleep(Duration::from_micros(50));
                pages.protect(VOLATILE, libc::PROT_READ | libc::PROT_WRITE);
            }
        });
        let result = catch_unwind(AssertUnwindSafe(|| fuzzer.episode()));
        is_over.store(true, Ordering::Release);
        while !mapper.is_finished() {
            fuzzer.apply_changes();
            std::thread::yield_now();
        }
        match result {
            Ok(Ok(())) => {}
            Ok(Err(address)) => {
                panic!("episode {episode}: a canary was overwritten at {address:#x}");
            }
            Err(panic) => {
                eprintln!("episode {episode}");
                resume_unwind(panic);
            }
        }
    });
    fuzzer.remove_queues();
}

/// The write index of the SDMA queue becomes a random number in this episode.
#[test]
fn an_sdma_queue_with_a_corrupted_write_index_is_stopped() {
    run(83);
}

/// Runs a few episodes, or episodes for FLIPWAVE_FUZZ_SECONDS seconds, from number
/// FLIPWAVE_FUZZ_EPISODE. `make fuzz-queues` runs it for ten minutes.
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
        // After a crash, the last number is the episode to debug.
        eprint!("\repisode {episode}");
        run(episode);
        episode += 1;
    }
    let steps = (episode - first) * u64::from(STEPS);
    eprintln!("\r{} episodes, {steps} steps, {} s", episode - first, clock.elapsed().as_secs());
}

/// Records its calls and executes nothing.
struct RecordingDriver {
    calls: Arc<Mutex<Vec<&'static str>>>,
    /// GPU address of a word that is overwritten while a dispatch is prepared.
    overwrites: Option<u64>,
    /// Time that each slice of a dispatch takes.
    slice: Duration,
}

impl DispatchDriver for RecordingDriver {
    fn begin(&mut self, _: &Machine, _: &KernelDispatch) -> Result<(), DeviceError> {
        self.calls.lock().unwrap().push("begin");
        if let Some(address) = self.overwrites {
            let pointer = unchecked_pointer(GpuAddress(address)).cast::<u64>();
            // SAFETY: in a page that the GPU may access.
            unsafe { pointer.write_volatile(0x1000) };
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

impl Fuzzer {
    /// Creates a queue with the packet of a kernel.
    fn create_queue_with_kernel(&mut self) -> Arc<Queue> {
        let queue = self.create_queue(QueueKind::Compute);
        let (ring, descriptor) = (self.gpu(RINGS[0]), self.gpu(DESCRIPTORS));
        for offset in (0..64).step_by(8) {
            self.put(ring + offset, 0);
            self.put(descriptor + offset, 0);
        }
        self.put(descriptor + 16, self.gpu(CODE).wrapping_sub(descriptor));
        self.put(ring, KERNEL | 1 << 16 | 64 << 32 | 1 << 48);
        self.put(ring + 8, 1 | 64 << 32);
        self.put(ring + 16, 1 | 1 << 32);
        self.put(ring + 32, descriptor);
        let structure = queue.amd_queue().0;
        self.put(structure + 128, 0);
        self.put(structure + 56, 1);
        self.put(structure + 192, 0);
        queue
    }
}

#[test]
fn a_dispatch_without_an_end_is_abandoned() {
    for is_overwritten in [false, true] {
        let mut fuzzer = Fuzzer::new(0);
        let queue = fuzzer.create_queue_with_kernel();
        let calls = Arc::<Mutex<Vec<&'static str>>>::default();
        let overwrites = is_overwritten.then_some(fuzzer.gpu(RINGS[0]) + 32);
        let slice = Duration::ZERO;
        let driver = RecordingDriver { calls: Arc::clone(&calls), overwrites, slice };
        fuzzer.compute.driver = Box::new(driver);
        let task = Task::Packet(aql::next(&queue).expect("a packet"));
        queue.destroy();
        let mut turn = fuzzer.gpus.take();
        fuzzer.compute.execute(&mut turn, &queue, &task).expect("no failure");
        assert_eq!(*calls.lock().unwrap(), ["begin", "abandon"], "{is_overwritten}");
    }
}

#[test]
fn removing_a_queue_waits_until_its_kernel_is_abandoned() {
    let mut fuzzer = Fuzzer::new(0);
    let queue = fuzzer.create_queue_with_kernel();
    let calls = Arc::<Mutex<Vec<&'static str>>>::default();
    let slice = Duration::from_millis(50);
    let driver = RecordingDriver { calls: Arc::clone(&calls), overwrites: None, slice };
    fuzzer.compute.driver = Box::new(driver);
    let machine = Arc::clone(&fuzzer.machine);
    let compute = &mut fuzzer.compute;
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
    assert!(!fuzzer.compute.advance(), "nothing is left to execute");
}

/// Environment variable that disables the checks of addresses in a test process.
const UNCHECKED: &str = "FLIPWAVE_TEST_UNCHECKED";

/// Runs in its own process for the negative control below; not a test.
#[test]
#[ignore = "another test runs it, and it crashes"]
fn unchecked() {
    if std::env::var_os(UNCHECKED).is_none() {
        return;
    }
    SKIP_CHECKS.store(true, Ordering::Relaxed);
    (0..30).for_each(run);
}

#[test]
fn hostile_queues_crash_the_engines_if_addresses_are_not_checked() {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program);
    child.args(["--exact", "--ignored", "engine::hostile::unchecked"]).env(UNCHECKED, "1");
    let output = child.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let is_found = output.status.signal().is_some() || text.contains("was overwritten");
    assert!(text.contains("running 1 test") && is_found, "{:?}\n{text}", output.status);
}
