//! Random redistributions, ghost cells, lists of fields, and ranks that are threads.

use std::ffi::c_void;
use std::ptr;

use super::Fuzz;
use super::abi::*;

/// Arrays of so many bytes, whose ends are those of their memory.
struct Fields {
    _memory: Vec<Vec<u64>>,
    places: Vec<*mut u8>,
}

impl Fields {
    fn new(count: usize, bytes: u64) -> Fields {
        let mut memory: Vec<Vec<u64>> = (0..count).map(|_| vec![1; bytes.div_ceil(8) as usize]).collect();
        // Elements of 8 bytes are aligned; smaller ones end at the end.
        let skip = (bytes.div_ceil(8) * 8 - bytes) as usize;
        let places =
            memory.iter_mut().map(|array| array.as_mut_ptr().cast::<u8>().wrapping_add(skip)).collect();
        Fields { _memory: memory, places }
    }
}

/// What arrays of the program may take.
const MOST_BYTES: u64 = 1 << 24;

impl Fuzz {
    fn ghosts(&mut self) -> Ghosts {
        let wild = self.one_in(20);
        let mut width = || if wild { self.number() } else { self.below(4) as u64 };
        let (low, high) = ([width(), width(), width()], [width(), width(), width()]);
        Ghosts {
            size: [96, 96, 96, 88, 64, 9][self.below(6)],
            low,
            high,
            periodic: std::array::from_fn(|_| self.below(2) as i32),
            faces_only: i32::from(self.one_in(3)),
            fields: if self.one_in(20) { self.number() } else { 1 + self.below(3) as u64 },
            exchange: if self.one_in(12) { c"pigeon".as_ptr() } else { ptr::null() },
            device: if self.one_in(12) { self.number() as i64 } else { -1 },
        }
    }

    fn element(&mut self) -> u64 {
        match self.below(12) {
            0 => self.number(),
            other => [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 8][other - 1],
        }
    }

    /// A redistribution, halo or sum with mostly right arguments.
    pub fn make_move(&mut self) {
        let three = self.three().map(|n| n % 12 + 1);
        let mut made = [ptr::null_mut(); 2];
        let mut statuses = [c!(ferrier_comm_one(&mut made[0])), 0];
        statuses[1] = match self.below(2) {
            0 => c!(ferrier_problem_redistribute(three.as_ptr(), &mut made[1])),
            _ => c!(ferrier_problem_r2c(three.as_ptr(), &mut made[1])),
        };
        for status in statuses {
            self.did(status);
        }
        self.handles.extend(made);
        for _ in 0..self.below(3) {
            self.problem();
        }
        let (side, element, ghosts) = (self.choice(), self.element(), self.ghosts());
        let any = self.handle();
        let [comm, problem] = if self.one_in(10) { [any, made[1]] } else { made };
        match self.below(3) {
            0 => {
                let options = if self.one_in(4) { any } else { ptr::null_mut() };
                self.made(|out| c!(ferrier_redistribution_create(comm, problem, element, options, out)));
            }
            1 => self.made(|out| c!(ferrier_halo_create(comm, problem, side, element, &ghosts, out))),
            _ => {
                let kind = self.below(7) as i32;
                self.made(|out| c!(ferrier_ghost_sum_create(comm, problem, side, kind, &ghosts, out)));
            }
        }
    }

    /// Runs any of them on arrays that are as long as they say, or too short.
    pub fn move_arrays(&mut self) {
        let (any, side) = (self.handle(), self.choice());
        let count = 1 + self.below(3);
        let short = if self.one_in(10) { 1 + self.next() % 9 } else { 0 };
        let (mut sizes, mut three) = ([0; 4], [0; 3]);
        let asked = [
            c!(ferrier_redistribution_bytes(any, 0, &mut sizes[0])),
            c!(ferrier_redistribution_bytes(any, 1, &mut sizes[1])),
            c!(ferrier_halo_bytes(any, &mut sizes[2])),
            c!(ferrier_ghost_sum_bytes(any, &mut sizes[3])),
            c!(ferrier_halo_shape(any, three.as_mut_ptr())),
            c!(ferrier_ghost_sum_memory_bytes(any, three.as_mut_ptr())),
            // Streams are refused in main memory.
            c!(ferrier_halo_set_stream(any, any)),
            c!(ferrier_ghost_sum_synchronize(any)),
            c!(ferrier_redistribution_set_stream(any, any)),
        ];
        for status in asked {
            self.did(status);
        }
        if sizes.iter().any(|bytes| *bytes > MOST_BYTES) {
            return;
        }
        let sizes = sizes.map(|bytes| bytes.saturating_sub(short));
        let (from, to) = (Fields::new(1, sizes[0]), Fields::new(1, sizes[1]));
        let run = c!(ferrier_redistribution_run(any, from.places[0], sizes[0], to.places[0], sizes[1]));
        self.did(run);
        let longer = sizes[0].max(sizes[1]);
        let array = Fields::new(1, longer);
        self.did(c!(ferrier_redistribution_run_in_place(any, array.places[0], longer)));
        for bytes in [sizes[2], sizes[3]] {
            let fields = Fields::new(count, bytes);
            let (list, count) = (fields.places.as_ptr(), count as u64);
            let mut statuses = [
                c!(ferrier_halo_exchange(any, list, count, bytes)),
                c!(ferrier_ghost_sum_run(any, list, count, bytes)),
                c!(ferrier_halo_start(any, list, count, bytes)),
                0,
            ];
            // While in flight the arrays must stay: it is finished, or freed.
            statuses[3] = match self.one_in(4) {
                true => c!(ferrier_halo_free(any)),
                false => c!(ferrier_halo_finish(any)),
            };
            for status in statuses {
                self.did(status);
            }
        }
        let mut notes = ptr::null_mut();
        if self.did(c!(ferrier_ghost_sum_notes(any, &mut notes))) {
            self.did(c!(ferrier_string_free(notes)));
        }
        self.made(|out| c!(ferrier_halo_make(any, out)));
        self.made(|out| c!(ferrier_redistribution_make(any, side, out)));
    }

    /// A call of a plan on arrays of their own.
    pub fn execute_fields(&mut self) {
        let (plan, action, count) = (self.handle(), self.below(7) as i32, 1 + self.below(4));
        let mut sizes = [0_u64; 3];
        for (number, size) in sizes.iter_mut().enumerate() {
            let status = c!(ferrier_plan_field_bytes(plan, number as i32 - 1, size));
            self.did(status);
        }
        let short = if self.one_in(10) { 4 } else { 0 };
        let [in_place, input, output] = sizes.map(|bytes| bytes.saturating_sub(short));
        let [from, to] = match action {
            0 => [input, output],
            1 => [output, input],
            2 => [input, input],
            _ => [0, in_place],
        };
        if from.max(to) > MOST_BYTES {
            return;
        }
        let (inputs, outputs) = (Fields::new(count, from), Fields::new(count, to));
        let list: Vec<*const u8> = inputs.places.iter().map(|place| place.cast_const()).collect();
        let (from_list, to_list) = (list.as_ptr(), outputs.places.as_ptr());
        let status = c!(ferrier_plan_execute_fields(
            plan,
            action,
            ptr::null(),
            count as u64,
            from_list,
            from,
            to_list,
            to
        ));
        self.did(status);
    }

    /// The same calls on ranks that are threads, with arguments that are right on every rank.
    pub fn on_ranks(&mut self) {
        let (ranks, nodes) = (2 + self.below(3) as u64, 1 + self.below(2) as u64);
        let seed = Box::new(self.next() | 1);
        let data: *const u64 = &*seed;
        let status =
            c!(ferrier_run_ranks(ranks, nodes, 1, Some(on_a_rank), data.cast_mut().cast::<c_void>()));
        self.did(status);
    }
}

extern "C" fn on_a_rank(data: H, comm: H) -> i32 {
    // SAFETY: a number that lives during the call and is not changed.
    let seed = unsafe { *data.cast::<u64>() };
    let mut fuzz = Fuzz::new(seed);
    fuzz.rank(comm);
    0
}

impl Fuzz {
    /// Every rank makes the same choices.
    fn rank(&mut self, comm: H) {
        let three: [u64; 3] = std::array::from_fn(|_| 1 + self.below(9) as u64);
        let (mut problem, mut plan, mut halo, mut sum) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let status = match self.below(3) {
            0 => c!(ferrier_problem_c2c(three.as_ptr(), &mut problem)),
            1 => c!(ferrier_problem_r2c(three.as_ptr(), &mut problem)),
            _ => c!(ferrier_problem_redistribute(three.as_ptr(), &mut problem)),
        };
        self.did(status);
        self.handles.push(problem);
        let batch = 1 + self.below(3);
        self.did(c!(ferrier_problem_batch(problem, batch as u64)));
        for side in 0..2 {
            let axis = self.below(3) as u64;
            let status = match self.below(4) {
                0 => c!(ferrier_problem_bricks(problem, side)),
                1 => c!(ferrier_problem_pencils(problem, side, axis)),
                2 => c!(ferrier_problem_slabs(problem, side, axis)),
                _ => {
                    c!(ferrier_problem_order(problem, side, [axis, (axis + 1) % 3, (axis + 2) % 3].as_ptr()))
                }
            };
            self.did(status);
        }
        let precision = self.below(2) as i32;
        if self.did(c!(ferrier_plan_create(comm, problem, precision, ptr::null_mut(), &mut plan))) {
            self.round_trip(plan, batch);
            self.did(c!(ferrier_plan_free(plan)));
        }
        let [low, high] = [(); 2].map(|()| std::array::from_fn(|_| self.below(4) as u64));
        let ghosts = Ghosts { size: 88, low, high, fields: 2, exchange: ptr::null(), ..self.ghosts() };
        let side = self.below(2) as i32;
        if self.did(c!(ferrier_halo_create(comm, problem, side, 8, &ghosts, &mut halo))) {
            self.exchange(halo);
        }
        if self.did(c!(ferrier_ghost_sum_create(comm, problem, side, 1, &ghosts, &mut sum))) {
            let mut bytes = 0;
            self.did(c!(ferrier_ghost_sum_bytes(sum, &mut bytes)));
            let fields = Fields::new(2, bytes);
            self.did(c!(ferrier_ghost_sum_run(sum, fields.places.as_ptr(), 2, bytes)));
            self.did(c!(ferrier_ghost_sum_free(sum)));
        }
        let mut values = [1.0; 3];
        self.did(c!(ferrier_comm_sum(comm, values.as_mut_ptr(), 3)));
        self.did(c!(ferrier_problem_free(problem)));
    }

    /// Forward and backward, with the arrays of the batch in one piece or apart.
    fn round_trip(&mut self, plan: H, batch: usize) {
        let (mut sizes, mut whole) = ([0; 2], [0; 2]);
        let asked = [
            c!(ferrier_plan_field_bytes(plan, 0, &mut sizes[0])),
            c!(ferrier_plan_field_bytes(plan, 1, &mut sizes[1])),
            c!(ferrier_plan_input_bytes(plan, &mut whole[0])),
            c!(ferrier_plan_output_bytes(plan, &mut whole[1])),
        ];
        for status in asked {
            self.did(status);
        }
        for action in 0..2 {
            let (from, to) = (action as usize, 1 - action as usize);
            let status = match self.one_in(2) {
                true => {
                    let (inputs, outputs) = (Fields::new(batch, sizes[from]), Fields::new(batch, sizes[to]));
                    let list: Vec<*const u8> = inputs.places.iter().map(|place| place.cast_const()).collect();
                    let (from_list, to_list) = (list.as_ptr(), outputs.places.as_ptr());
                    let (count, n, m) = (batch as u64, sizes[from], sizes[to]);
                    c!(ferrier_plan_execute_fields(
                        plan,
                        action,
                        ptr::null(),
                        count,
                        from_list,
                        n,
                        to_list,
                        m
                    ))
                }
                false => {
                    let (input, output) = (Fields::new(1, whole[from]), Fields::new(1, whole[to]));
                    let (from_place, to_place) = (input.places[0], output.places[0]);
                    c!(ferrier_plan_execute(
                        plan,
                        action,
                        ptr::null(),
                        from_place,
                        whole[from],
                        to_place,
                        whole[to]
                    ))
                }
            };
            self.did(status);
        }
    }

    /// Ghost cells at once or in two halves; now and then the halo goes while it is in flight, on every rank.
    fn exchange(&mut self, halo: H) {
        let mut bytes = 0;
        self.did(c!(ferrier_halo_bytes(halo, &mut bytes)));
        let fields = Fields::new(2, bytes);
        let list = fields.places.as_ptr();
        self.did(c!(ferrier_halo_exchange(halo, list, 2, bytes)));
        self.did(c!(ferrier_halo_start(halo, list, 2, bytes)));
        if !self.one_in(4) {
            self.did(c!(ferrier_halo_finish(halo)));
        }
        self.did(c!(ferrier_halo_free(halo)));
        drop(fields);
    }
}
