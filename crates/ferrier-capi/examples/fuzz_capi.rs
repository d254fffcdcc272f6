//! Random calls of the C interface: `fuzz_capi [SECONDS [SEED]]` (1 second unless said). Arguments are NULL, wrong or
//! right; pointers keep the promise of the header (as much memory as the arguments say), and no byte more, so that a
//! sanitizer sees what goes beyond. `scripts/fuzz-capi` runs it under AddressSanitizer.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use ferrier_capi as _;

#[path = "fuzz_capi/abi.rs"]
mod abi;
#[path = "fuzz_capi/moves.rs"]
mod moves;

use abi::*;

extern "C" fn nothing(_: H, _: *const c_void) {}

struct Fuzz {
    state: u64,
    /// Handles that were made, those that were destroyed included.
    handles: Vec<H>,
    outcomes: BTreeMap<i32, usize>,
}

impl Fuzz {
    fn new(seed: u64) -> Fuzz {
        Fuzz { state: seed.max(1), handles: Vec::new(), outcomes: BTreeMap::new() }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Small, and now and then anything.
    fn number(&mut self) -> u64 {
        match self.below(24) {
            0 => self.next(),
            1 => u64::MAX,
            _ => self.below(9) as u64,
        }
    }

    fn three(&mut self) -> [u64; 3] {
        if self.one_in(12) {
            std::array::from_fn(|_| self.number())
        } else {
            std::array::from_fn(|_| 1 + self.below(9) as u64)
        }
    }

    fn choice(&mut self) -> i32 {
        match self.below(30) {
            0 => self.next() as i32,
            _ => self.below(3) as i32,
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(8) {
            0 => f64::from_bits(self.next()),
            1 => -1.0,
            2 => 0.0,
            _ => self.below(1000) as f64 * 1e-3,
        }
    }

    /// Mostly one of the last handles; or destroyed, foreign, NULL.
    fn handle(&mut self) -> H {
        let (all, recent) = (self.handles.len(), self.handles.len().min(12));
        let (old, new) = (self.below(all.max(1)), self.below(recent.max(1)));
        match self.below(20) {
            0 => ptr::null_mut(),
            1 => ptr::without_provenance_mut(self.next() as usize),
            2 if all > 0 => self.handles[old],
            _ if all > 0 => self.handles[all - 1 - new],
            _ => ptr::null_mut(),
        }
    }

    fn text(&mut self, words: &[&[u8]]) -> CString {
        let bytes = words[self.below(words.len())].to_vec();
        CString::new(bytes).unwrap_or_default()
    }

    fn did(&mut self, status: i32) -> bool {
        assert!((0..20).contains(&status), "status {status}");
        if status == 18 {
            // SAFETY: valid until the next failure.
            panic!("a panic inside: {}", unsafe { CStr::from_ptr(ferrier_last_error()) }.to_string_lossy());
        }
        *self.outcomes.entry(status).or_default() += 1;
        status == 0
    }

    fn made(&mut self, call: impl FnOnce(*mut H) -> i32) {
        let mut out = ptr::null_mut();
        let place = if self.one_in(40) { ptr::null_mut() } else { &raw mut out };
        if self.did(call(place)) {
            self.handles.push(out);
        }
    }

    fn given(&mut self, call: impl FnOnce(*mut *mut c_char) -> i32) {
        let mut text = ptr::null_mut();
        if self.did(call(&mut text)) {
            // SAFETY: a text that the library gave, freed once; the second time is refused.
            unsafe {
                assert!(!CStr::from_ptr(text).to_bytes().is_empty());
                assert_eq!((ferrier_string_free(text), ferrier_string_free(text)), (0, 1));
            }
        }
    }

    /// A call of a plan on arrays that are as long as they say, to the byte.
    fn execute(&mut self) {
        let (plan, action) = (self.handle(), self.below(7) as i32);
        let (mut sizes, mut lengths) = ([0_u64; 3], [0_usize; 2]);
        // SAFETY: places for results.
        unsafe {
            ferrier_plan_input_bytes(plan, &mut sizes[0]);
            ferrier_plan_output_bytes(plan, &mut sizes[1]);
            ferrier_plan_in_place_bytes(plan, &mut sizes[2]);
        }
        for (side, length) in lengths.iter_mut().enumerate() {
            let needed = match action {
                0 => sizes[side],
                1 => sizes[1 - side],
                2 => sizes[0],
                _ => sizes[2],
            };
            *length = needed as usize + if self.one_in(6) { self.below(9) } else { 0 };
            if self.one_in(12) {
                *length = length.saturating_sub(1 + self.below(17));
            }
        }
        let [mut input, mut output] = lengths.map(|length| vec![0_u64; length.div_ceil(8)]);
        let call = Call {
            size: [32, 32, 32, 16, 24, 7][self.below(6)],
            scale: self.float(),
            op: if self.one_in(3) { self.handle() } else { ptr::null_mut() },
            workspace: if self.one_in(5) { self.handle() } else { ptr::null_mut() },
        };
        let call: *const Call = if self.one_in(2) { ptr::null() } else { &call };
        // At the ends of their memory, as far as they are aligned.
        let start = |array: &mut Vec<u64>, length: usize| {
            let at = (array.len() * 8 - length) & !3;
            array.as_mut_ptr().cast::<u8>().wrapping_add(at)
        };
        let (from, to) = (start(&mut input, lengths[0]), start(&mut output, lengths[1]));
        let bytes = lengths.map(|length| (length & !3) as u64);
        // SAFETY: so many bytes at both addresses.
        let status = unsafe { ferrier_plan_execute(plan, action, call, from, bytes[0], to, bytes[1]) };
        self.did(status);
    }

    fn problem(&mut self) {
        let (problem, side, axis) = (self.handle(), self.choice(), self.number());
        let (three, number, other) = (self.three(), self.number(), self.number());
        let six: [u64; 6] = std::array::from_fn(|i| if i < 3 { 0 } else { three[i - 3] });
        let float = self.float();
        let radii = [float * 6.0, 3.0, 4.0];
        // SAFETY: arrays of the lengths that the header says.
        let status = unsafe {
            match self.below(24) {
                20 => ferrier_problem_sign(problem, self.choice() - 1),
                21 => ferrier_problem_real_input(problem, self.choice()),
                22 => ferrier_problem_inside(problem, side, three.as_ptr(), [number % 3; 3].as_ptr()),
                23 => ferrier_problem_pencil_family(
                    problem,
                    side,
                    axis,
                    1 + number % 2,
                    other % 3,
                    number % 3,
                    1,
                ),
                0 => ferrier_problem_axes(problem, three.map(|n| n % 3).as_ptr(), 1 + number % 3),
                1 => ferrier_problem_halved(problem, axis % 4),
                2 => ferrier_problem_complex_values(problem),
                3 => ferrier_problem_batch(problem, number),
                4 => ferrier_problem_scale(problem, self.choice(), self.choice()),
                5 => ferrier_problem_keep_lowest(problem, axis, number),
                6 => ferrier_problem_keep_range(problem, axis, number, other),
                7 => ferrier_problem_keep_ellipsoid(problem, radii.as_ptr()),
                8 => ferrier_problem_support(problem, axis, number, other),
                9 => ferrier_problem_tolerance(problem, float),
                10 => ferrier_problem_reproducible(problem, self.choice()),
                11 => ferrier_problem_operators(problem, 1),
                12 => ferrier_problem_slabs(problem, side, axis),
                13 => ferrier_problem_pencils(problem, side, axis),
                14 => ferrier_problem_bricks(problem, side),
                15 => ferrier_problem_unconstrained(problem, side),
                16 => ferrier_problem_local_box(problem, side, &six),
                17 => ferrier_problem_boxes(problem, side, &six, 1),
                18 => ferrier_problem_order(problem, side, three.map(|n| n % 3).as_ptr()),
                _ => {
                    let strides = [three[1].wrapping_mul(three[2]), three[2], 1];
                    ferrier_problem_strides(problem, side, strides.as_ptr(), number, 0)
                }
            }
        };
        self.did(status);
        if number == 3 {
            self.did(c!(ferrier_problem_grid(problem, side, [1, 1, 1].as_ptr())));
        }
        self.questions(problem, axis % 4);
    }

    /// What problems tell.
    fn questions(&mut self, problem: H, axis: u64) {
        let (room, k, mut count) = (self.below(5), self.number(), 0);
        let (mut out, mut list) = ([0; 3], vec![0_u64; 2 * room]);
        let status = c!(ferrier_problem_spectrum_shape(problem, out.as_mut_ptr()));
        self.did(status);
        let status = match self.below(4) {
            0 => c!(ferrier_problem_kept_modes(problem, axis, list.as_mut_ptr(), room as u64, &mut count)),
            1 => c!(ferrier_problem_columns(problem, list.as_mut_ptr(), room as u64, &mut count)),
            2 => c!(ferrier_problem_mode(problem, k, out.as_mut_ptr())),
            _ => c!(ferrier_problem_check(problem)),
        };
        self.did(status);
    }

    fn options(&mut self) {
        let options = self.handle();
        let keys: [&[u8]; 9] =
            [b"exchange", b"kernel", b"threads", b"grid", b"fuse", b"memory", b"axes", b"colour", b"\xff"];
        let values: [&[u8]; 10] = [
            b"direct",
            b"native",
            b"2",
            b"1x1",
            b"true",
            b"small",
            b"2,1,0",
            b"{",
            b"null",
            b"99999999999999999999",
        ];
        let (key, value) = (self.text(&keys), self.text(&values));
        let json = self.text(&[b"{\"fuse\": true}", b"[1]", b"{\"threads\": -1}", b"", b"{\"overlap\": {}}"]);
        // SAFETY: texts that end with a zero byte.
        let status = unsafe {
            match self.below(4) {
                0 => ferrier_options_set_json(options, json.as_ptr()),
                1 => ferrier_options_effort(options, [0, 0, 3, 9][self.below(4)], self.float()),
                2 => ferrier_options_wisdom(options, ptr::null()),
                _ => ferrier_options_set(options, key.as_ptr(), value.as_ptr()),
            }
        };
        self.did(status);
    }

    fn make(&mut self) {
        let (a, b, c, precision) = (self.handle(), self.handle(), self.handle(), self.choice());
        let (three, number) = (self.three(), self.number());
        let kinds: [i32; 3] = std::array::from_fn(|_| self.below(12) as i32);
        let json = self.text(&[b"{}", b"null", b"{\"shape\":[4,4,4]}", b"\xfe"]);
        let names: [&[u8]; 5] = [b"laplacian", b"gaussian", b"shift", b"two_thirds", b"curl"];
        let (name, lengths) = (self.text(&names), [self.float(), 1.0, 2.0]);
        match self.below(16) {
            0 => self.made(|out| c!(ferrier_comm_one(out))),
            1 | 2 => self.made(|out| c!(ferrier_problem_c2c(three.as_ptr(), out))),
            3 | 4 => self.made(|out| c!(ferrier_problem_r2c(three.as_ptr(), out))),
            5 => self.made(|out| c!(ferrier_problem_mixed(three.as_ptr(), kinds.as_ptr(), out))),
            6 => self.made(|out| c!(ferrier_problem_c2c_1d(number % 4096, out))),
            7 => self.made(|out| c!(ferrier_problem_from_json(json.as_ptr(), out))),
            8 => self.made(|out| c!(ferrier_problem_clone(a, out))),
            9 => self.made(|out| c!(ferrier_options_create(out))),
            10 => self.made(|out| {
                c!(ferrier_operator_named(
                    a,
                    name.as_ptr(),
                    lengths.as_ptr(),
                    lengths.as_ptr(),
                    number % 4,
                    out
                ))
            }),
            11 => self.made(|out| c!(ferrier_operator_callback(Some(nothing), ptr::null_mut(), out))),
            12 => self.made(|out| c!(ferrier_plan_make_workspace(a, out))),
            13 => self.made(|out| c!(ferrier_draft_create(a, b, precision, c, out))),
            14 => self.made(|out| c!(ferrier_draft_build(a, precision, out))),
            _ => {
                self.made(|out| c!(ferrier_plan_make_in_place(a, out)));
                self.made(|out| c!(ferrier_plan_make_input(a, out)));
            }
        }
    }

    /// A plan with mostly right arguments.
    fn plan(&mut self) {
        let three = self.three().map(|n| n % 40 + 1);
        let mut made = [ptr::null_mut(); 2];
        // SAFETY: places for results, a shape.
        unsafe {
            ferrier_comm_one(&mut made[0]);
            ferrier_comm_set_threads(made[0], 1 + self.below(3) as u64);
            ferrier_problem_r2c(three.as_ptr(), &mut made[1]);
        }
        self.handles.extend(made);
        for _ in 0..self.below(4) {
            self.problem();
        }
        let (precision, options) = (self.below(2) as i32, self.handle());
        let options = if self.one_in(3) { options } else { ptr::null_mut() };
        self.made(|out| c!(ferrier_plan_create(made[0], made[1], precision, options, out)));
    }

    fn look(&mut self) {
        let (any, side, number) = (self.handle(), self.choice(), self.number());
        let what =
            self.text(&[b"recipe", b"memory", b"notes", b"events", b"profile", b"certificate", b"poem"]);
        self.given(|out| c!(ferrier_plan_json(any, what.as_ptr(), out)));
        self.given(|out| c!(ferrier_draft_json(any, what.as_ptr(), out)));
        self.given(|out| c!(ferrier_problem_json(any, out)));
        self.given(|out| c!(ferrier_comm_json(any, out)));
        let mut seconds = 0.0;
        let asked = [c!(ferrier_draft_seconds(any, side, &mut seconds)), c!(ferrier_plan_synchronize(any))];
        for status in asked {
            self.did(status);
        }
        let (mut six, mut five, mut one, mut data) = ([0; 6], [0.0; 5], 0, ptr::null_mut());
        // SAFETY: places for results; the memory of an array is as long as it says.
        unsafe {
            ferrier_plan_box(any, side, &mut six);
            ferrier_plan_box_of(any, side, number, &mut six);
            ferrier_plan_order(any, side, six.as_mut_ptr());
            ferrier_plan_certificate(any, &mut five);
            ferrier_comm_rank(any, &mut one);
            if ferrier_array_data(any, &mut data) == 0 && ferrier_array_bytes(any, &mut one) == 0 && one > 0 {
                data.write_bytes(1, one as usize);
                let mut copy = vec![0_u64; (one as usize).div_ceil(8)];
                let place = copy.as_mut_ptr().cast();
                self.did(ferrier_array_download(any, place, one));
                self.did(ferrier_array_upload(any, place, one));
            }
        }
    }

    fn destroy(&mut self) {
        let any = self.handle();
        // SAFETY: handles are checked.
        unsafe {
            for free in [ferrier_comm_free, ferrier_problem_free, ferrier_options_free, ferrier_plan_free]
                .into_iter()
                .chain([
                    ferrier_array_free,
                    ferrier_workspace_free,
                    ferrier_operator_free,
                    ferrier_draft_free,
                    ferrier_halo_free,
                    ferrier_ghost_sum_free,
                    ferrier_redistribution_free,
                ])
            {
                free(any);
            }
        }
        // Forgets most of what was made long ago, after destroying it.
        if self.handles.len() > 200 {
            for old in self.handles.drain(..100).collect::<Vec<_>>() {
                self.handles.push(old);
                self.destroy_one(old);
                self.handles.pop();
            }
        }
    }

    fn destroy_one(&mut self, any: H) {
        // SAFETY: handles are checked.
        unsafe {
            let _ = (ferrier_plan_free(any), ferrier_array_free(any), ferrier_draft_free(any));
            let _ = (ferrier_workspace_free(any), ferrier_operator_free(any), ferrier_problem_free(any));
            let _ = (ferrier_comm_free(any), ferrier_options_free(any));
            let _ = (ferrier_halo_free(any), ferrier_ghost_sum_free(any), ferrier_redistribution_free(any));
        }
    }
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (seconds, seed) = (words.next().unwrap_or(1), words.next().unwrap_or(20_261_116));
    let mut fuzz = Fuzz::new(seed);
    let (start, mut calls) = (Instant::now(), 0_usize);
    while start.elapsed() < Duration::from_secs(seconds) {
        match fuzz.below(22) {
            16 | 17 => fuzz.make_move(),
            18 | 19 => fuzz.move_arrays(),
            20 => fuzz.execute_fields(),
            21 if calls % 8 == 0 => fuzz.on_ranks(),
            0 => fuzz.plan(),
            1..=3 => fuzz.make(),
            4..=6 => fuzz.problem(),
            7 => fuzz.options(),
            8..=13 => fuzz.execute(),
            14 => fuzz.look(),
            _ => fuzz.destroy(),
        }
        calls += 1;
    }
    // The threads of plans end with them: what is left then is a leak.
    for handle in std::mem::take(&mut fuzz.handles) {
        fuzz.destroy_one(handle);
    }
    println!("fuzz_capi: {calls} steps, outcomes by status {:?}", fuzz.outcomes);
    assert!(fuzz.outcomes.get(&0).is_some_and(|good| *good > 0), "nothing ever succeeded");
}
