//! Blocks of lines, a few groups at a time.

use std::marker::PhantomData;

use super::along::{Along, Stack};
use super::along_real::{AlongReal, FoldAlong, UnfoldAlong};
use super::fft::{Desk, Fft};
use super::moves::{Form, Gather, Move, Scatter};
use super::pocket::{Taking, pitch};
use super::ports::{
    Even, Finish, Port, Rows, are_aliases, are_rows, gaps, list_rows, whole, whole_cache_lines,
};
use super::real::{Fold, Mirror, Unfold, twiddles};
use super::touch::Touch;
use super::vector::Vector;
use crate::lines::{LineBlock, Lines, StoreHint, Strip};
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

/// Lines on the vectors `V`.
pub(super) struct NativeLines<V: Vector> {
    spec: LinesSpec,
    /// The factor of the results; [`LineBlock::factor`] comes on top.
    scale: f64,
    fft: Fft<V::T>,
    /// For contiguous lines that go one by one.
    along: Option<Along<V::T>>,
    along_real: Option<AlongReal<V::T>>,
    /// Of the extra pass for an even number of reals.
    twiddles: Vec<V::T>,
    /// Of elements that stay in the order of the passes.
    places: Option<Vec<usize>>,
    lanes: PhantomData<fn() -> V>,
}

/// What the areas of the groups that go together may take: most of a first-level cache.
const HOT_BYTES: usize = 17 << 10;

/// What a pocket may take: two of them and a block that is worked on stay in a second-level cache.
const POCKET_BYTES: usize = 320 << 10;

/// Where lines go straight into the passes or out of them.
#[derive(Clone, Copy)]
enum Side<T> {
    Even(Even<T>),
    Rows(Rows<T>),
}

/// How a block goes: whether lines come as rows and go as rows, how many
/// groups go together, and where things lie in scratch.
struct Sheet<T> {
    rows_in: bool,
    rows_out: bool,
    /// Whether caches have no room for the rows: they are read once, by all
    /// groups together.
    far: bool,
    most: usize,
    stream: bool,
    tables: [*const *mut T; 2],
    /// The table of the next block, or null: to be fetched, or taken along.
    ahead: *const *mut T,
    take: bool,
    a: *mut T,
    b: *mut T,
    spare: *mut T,
}

/// Numbers of a row of so many complex elements, whole cache lines.
fn row(lines: usize) -> usize {
    (2 * lines).next_multiple_of(16)
}

/// Neighbouring groups of lines on their way; all are full, or there is one.
struct Team<'a, 'b, V: Vector> {
    block: &'a LineBlock<'a, V::T>,
    first: usize,
    lines: usize,
    groups: usize,
    /// Rows, where lines lie side by side and fill the groups.
    rows_in: Option<Side<V::T>>,
    rows_out: Option<Side<V::T>>,
    /// Two areas for each group, and more.
    a: Even<V::T>,
    b: Even<V::T>,
    spare: *mut V::T,
    /// Whether to store past the caches.
    stream: bool,
    touch: &'a mut Touch<'b, V::T>,
}

impl<'b, V: Vector> Team<'_, 'b, V> {
    fn desk(&mut self) -> Desk<'_, 'b, V::T> {
        let (work, groups, spare) = (self.a, self.groups, self.spare);
        Desk { work, groups, scrambled: false, spare, touch: self.touch }
    }

    /// First line of group `g` and how many it has.
    fn group(&self, g: usize) -> (usize, usize) {
        let before = g * V::LINES;
        (self.first + before, V::LINES.min(self.lines - before))
    }
}

impl<V: Vector> NativeLines<V> {
    /// The processor must have `V`'s instruction set.
    pub fn new(spec: &LinesSpec) -> Self {
        let n = spec.n.max(1);
        let halved = Self::is_halved(spec);
        let fft = Fft::new(if halved { n / 2 } else { n }, V::RADICES, Self::is_backward(spec));
        let twiddles = if halved { twiddles(n, Self::is_backward(spec)) } else { vec![] };
        let half = if halved { n / 2 } else { 0 };
        NativeLines {
            spec: *spec,
            // Unfolding leaves twice the spectrum.
            scale: match spec.kind {
                LineKind::RealForward if halved => 0.5 * spec.scale,
                _ => spec.scale,
            },
            places: fft.places(),
            along: Along::new::<V>(&fft),
            fft,
            along_real: AlongReal::new::<V>(half, &twiddles),
            twiddles,
            lanes: PhantomData,
        }
    }

    fn is_halved(spec: &LinesSpec) -> bool {
        let real = matches!(spec.kind, LineKind::RealForward | LineKind::RealBackward);
        real && spec.n > 0 && spec.n.is_multiple_of(2)
    }

    /// The factor of a block's results.
    fn scale(&self, block: &LineBlock<'_, V::T>) -> V::T {
        V::T::rounded(self.scale * block.factor)
    }

    /// Numbers of one area: a line, and the element more that halved real lines have.
    fn area(&self) -> usize {
        (self.fft.n + 1) * V::LANES
    }

    /// Numbers that a table of `rows` addresses takes, whole cache lines.
    fn table(rows: usize) -> usize {
        (rows * size_of::<*mut V::T>()).next_multiple_of(64) / size_of::<V::T>()
    }

    fn is_backward(spec: &LinesSpec) -> bool {
        matches!(spec.kind, LineKind::Backward | LineKind::RealBackward)
    }

    /// What the numbers of lines of this width are.
    fn form(&self, width: usize) -> Form {
        match width {
            2 => Form::Complex,
            _ if Self::is_halved(&self.spec) => Form::Pairs,
            _ => Form::Singles,
        }
    }

    unsafe fn gather(&self, team: &mut Team<'_, '_, V>, area: Even<V::T>) {
        let form = self.form(self.spec.kind.width_in());
        let per_element = if form == Form::Pairs { 2 } else { 1 };
        for g in 0..team.groups {
            let ((first, lines), area) = (team.group(g), area.group(g));
            for (from, to) in gaps(team.block.from, self.spec.kind.len_in(self.spec.n)) {
                let (from, to) = (from / per_element, to.div_ceil(per_element));
                // SAFETY: the area has a place for every element of the line.
                unsafe { std::ptr::write_bytes(area.add(from * V::LANES), 0, (to - from) * V::LANES) };
            }
            for strip in team.block.from {
                let it = Move { strip, first, lines, form, area, stream: false, places: None };
                // SAFETY: the strips are the caller's promise, the area is long enough.
                unsafe { V::enter(Gather::<V>(it, team.touch)) };
            }
        }
    }

    unsafe fn scatter(&self, team: &mut Team<'_, '_, V>, area: Even<V::T>, places: Option<&[usize]>) {
        let form = self.form(self.spec.kind.width_out());
        let scale = self.scale(team.block);
        for g in 0..team.groups {
            let ((first, lines), area, stream) = (team.group(g), area.group(g), team.stream);
            for strip in team.block.to {
                let it = Move { strip, first, lines, form, area, stream, places };
                // SAFETY: the strips are the caller's promise, the area is long enough.
                unsafe { V::enter(Scatter::<V>(it, scale, team.touch)) };
            }
        }
    }

    /// The complex transform from rows (else area `a`) to rows (else area `b`).
    unsafe fn transform(&self, team: &mut Team<'_, '_, V>, from: Option<Side<V::T>>, to: Option<Side<V::T>>) {
        let (from, to) = (from.unwrap_or(Side::Even(team.a)), to.unwrap_or(Side::Even(team.b)));
        let desk = &mut team.desk();
        // SAFETY: areas and spare are as long as the plan says.
        unsafe {
            match (from, to) {
                (Side::Even(from), Side::Even(to)) => self.fft.run::<V, _, _>(from, to, desk),
                (Side::Even(from), Side::Rows(to)) => self.fft.run::<V, _, _>(from, to, desk),
                (Side::Rows(from), Side::Even(to)) => self.fft.run::<V, _, _>(from, to, desk),
                (Side::Rows(from), Side::Rows(to)) => self.fft.run::<V, _, _>(from, to, desk),
            }
        }
    }

    unsafe fn complex(&self, team: &mut Team<'_, '_, V>) {
        let (rows_in, rows_out, a, b) = (team.rows_in, team.rows_out, team.a, team.b);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            if rows_in.is_none() {
                self.gather(team, a);
            }
            if rows_in.is_none() && rows_out.is_none() && self.places.is_some() {
                self.fft.scramble::<V>(&mut team.desk());
                return self.scatter(team, a, self.places.as_deref());
            }
            self.transform(team, rows_in, rows_out);
            if rows_out.is_none() {
                self.scatter(team, b, None);
            }
        }
    }

    unsafe fn real_forward(&self, team: &mut Team<'_, '_, V>) {
        let (a, b, half, twiddles) = (team.a, team.b, self.fft.n, &self.twiddles[..]);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            self.gather(team, a);
            self.transform(team, None, None);
            if !Self::is_halved(&self.spec) {
                return self.scatter(team, b, None);
            }
            for g in 0..team.groups {
                let area = b.group(g);
                match team.rows_out.unwrap_or(Side::Even(a)) {
                    Side::Rows(rows) => {
                        V::enter(Unfold::<V, _> { area, half, twiddles, to: Port::<V>::of_group(&rows, g) })
                    }
                    Side::Even(even) => {
                        V::enter(Unfold::<V, _> { area, half, twiddles, to: Port::<V>::of_group(&even, g) })
                    }
                }
            }
            if team.rows_out.is_none() {
                self.scatter(team, a, None);
            }
        }
    }

    unsafe fn real_backward(&self, team: &mut Team<'_, '_, V>) {
        let (a, b, half, twiddles) = (team.a, team.b, self.fft.n, &self.twiddles[..]);
        let halved = Self::is_halved(&self.spec);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            if !halved {
                self.gather(team, a);
            } else if team.rows_in.is_none() {
                self.gather(team, b);
            }
            for g in 0..team.groups {
                let area = a.group(g);
                match team.rows_in.unwrap_or(Side::Even(b)) {
                    _ if !halved => V::enter(Mirror::<V> { area, n: half, lanes: PhantomData }),
                    Side::Rows(rows) => {
                        V::enter(Fold::<V, _> { from: Port::<V>::of_group(&rows, g), half, twiddles, area })
                    }
                    Side::Even(even) => {
                        V::enter(Fold::<V, _> { from: Port::<V>::of_group(&even, g), half, twiddles, area })
                    }
                }
            }
            self.transform(team, None, None);
            self.scatter(team, b, None);
        }
    }

    /// How a block goes, with its tables of rows.
    ///
    /// # Safety
    /// `scratch` is as long as [`Lines::scratch`] says.
    unsafe fn sheet(&self, block: &LineBlock<'_, V::T>, scratch: *mut V::T) -> Sheet<V::T> {
        let kind = self.spec.kind;
        let (len_in, len_out) = (kind.len_in(self.spec.n), kind.len_out(self.spec.n));
        let full = block.lines / V::LINES;
        let rows_in = kind.width_in() == 2 && full > 0 && are_rows(block.from, 2);
        let rows_out = kind.width_out() == 2 && full > 0 && are_rows(block.to, 2);
        let pieces = whole(block.from, len_in).is_none() || whole(block.to, len_out).is_none();
        let far =
            rows_in && rows_out && full > 1 && (pieces || block.from_staging || are_aliases(block.from));
        let most = if far { full } else { self.together(full) };
        // What is dropped must not be written past the caches.
        let stream = block.store == StoreHint::Stream
            && !(rows_out && gaps(block.to, len_out).next().is_some())
            && whole_cache_lines::<V>(block.to, kind.width_out(), block.lines, most);
        let take = far && block.ahead_lines > 0 && !block.staging.is_null() && are_rows(block.ahead, 2);
        let ahead = take || far && block.ahead_lines >= full * V::LINES && are_rows(block.ahead, 2);

        let groups = block.lines.div_ceil(V::LINES);
        let lens = [
            Self::table(len_in),
            Self::table(len_out),
            Self::table(len_in),
            row(block.lines),
            row(block.lines),
            groups * self.area(),
            self.together(groups) * self.area(),
        ];
        let mut at = scratch;
        let [table_in, table_out, table_ahead, zeros, waste, a, b] = lens.map(|len| {
            let here = at;
            at = at.wrapping_add(len);
            here
        });
        // SAFETY: the tables have a place for every element; the spare rows are as long as the block's.
        unsafe {
            if rows_in && (far || pieces) || ahead {
                std::ptr::write_bytes(zeros, 0, row(block.lines));
                list_rows(block.from, len_in, zeros, table_in.cast());
            }
            if rows_out && (far || pieces) {
                list_rows(block.to, len_out, waste, table_out.cast());
            }
            if ahead {
                list_rows(block.ahead, len_in, zeros, table_ahead.cast());
            }
        }
        let ahead = if ahead { table_ahead.cast_const().cast() } else { std::ptr::null() };
        let tables = [table_in, table_out].map(|table| table.cast_const().cast());
        Sheet { rows_in, rows_out, far, most, stream, tables, ahead, take, a, b, spare: at }
    }

    /// The team that begins with line `first`.
    fn team<'a, 'b>(
        &self,
        block: &'a LineBlock<'a, V::T>,
        sheet: &Sheet<V::T>,
        first: usize,
        touch: &'a mut Touch<'b, V::T>,
    ) -> Team<'a, 'b, V> {
        let groups = sheet.most.min((block.lines - first) / V::LINES);
        let (len_in, len_out) = (self.spec.kind.len_in(self.spec.n), self.spec.kind.len_out(self.spec.n));
        let finish = Finish::new(self.scale(block), sheet.stream);
        let side = |strips: &[Strip<V::T>], len: usize, table: *const *mut V::T, pocketed: bool| match whole(
            strips, len,
        ) {
            Some(strip) if !sheet.far || pocketed => {
                let start = strip.ptr.wrapping_add(2 * first);
                Side::Even(Even { start, step: strip.step, pitch: V::LANES, finish })
            }
            _ => {
                let reserve = sheet.far && !sheet.stream;
                let ahead = if sheet.take { std::ptr::null() } else { sheet.ahead };
                Side::Rows(Rows { table, at: 2 * first, finish, reserve, ahead })
            }
        };
        let [table_in, table_out] = sheet.tables;
        Team {
            block,
            first,
            lines: if groups == 0 { block.lines - first } else { groups * V::LINES },
            groups: groups.max(1),
            rows_in: (sheet.rows_in && groups > 0)
                .then(|| side(block.from, len_in, table_in, block.from_staging)),
            rows_out: (sheet.rows_out && groups > 0).then(|| side(block.to, len_out, table_out, false)),
            a: Even::areas::<V>(sheet.a, self.area()),
            b: Even::areas::<V>(sheet.b, self.area()),
            spare: sheet.spare,
            stream: sheet.stream,
            touch,
        }
    }

    /// Source and target of lines that go one by one, if these do: all of each lies in one place.
    fn stacks<'a>(&self, block: &LineBlock<'a, V::T>) -> Option<[&'a Strip<V::T>; 2]> {
        let kind = self.spec.kind;
        let (from, to) =
            (whole(block.from, kind.len_in(self.spec.n))?, whole(block.to, kind.len_out(self.spec.n))?);
        let dense = from.step == kind.width_in() as isize && to.step == kind.width_out() as isize;
        let real = matches!(kind, LineKind::RealForward | LineKind::RealBackward);
        (dense && (!real || self.along_real.is_some())).then_some([from, to])
    }

    /// Contiguous lines, one by one.
    unsafe fn along(
        &self,
        along: &Along<V::T>,
        block: &LineBlock<'_, V::T>,
        [from, to]: [&Strip<V::T>; 2],
        scratch: &mut [V::T],
    ) -> bool {
        let width = self.spec.kind.width_out();
        let stream = block.store == StoreHint::Stream
            && width == 2
            && self.along_real.is_none()
            && along.streams()
            && whole_cache_lines::<V>(block.to, width, block.lines, 1);
        let finish = Finish::new(self.scale(block), stream);
        let mut touch = self.touch(block, (true, true), stream);
        // Apart by a cache line, so that lines of a power of two do not meet in the cache.
        let lane = 2 * self.fft.n + 64 / size_of::<V::T>();
        let hot = HOT_BYTES / 2 / (lane * size_of::<V::T>());
        let most = hot.min(scratch.len() / (2 * lane)).max(1);
        let stack = |strip: &Strip<V::T>, first: usize| {
            let start = strip.ptr.wrapping_offset(first as isize * strip.lane);
            Stack { start, lane: strip.lane }
        };
        let (work, other) = scratch[..2 * most * lane].split_at_mut(most * lane);
        let [work, other] = [work, other].map(|s| Stack { start: s.as_mut_ptr(), lane: lane as isize });
        for first in (0..block.lines).step_by(most) {
            let lines = most.min(block.lines - first);
            let (from, to) = (stack(from, first), stack(to, first));
            // SAFETY: the caller's promises; the scratch has room for twice this many lines.
            unsafe {
                match (&self.along_real, self.spec.kind) {
                    (Some(real), LineKind::RealForward) => {
                        along.run::<V>(&self.fft, lines, [from, work, other], Finish::plain(), &mut touch);
                        V::enter(UnfoldAlong::<V> { real, lines, from: other, to, finish });
                    }
                    (Some(real), LineKind::RealBackward) => {
                        V::enter(FoldAlong::<V> { real, lines, from, to: other });
                        along.run::<V>(&self.fft, lines, [other, work, to], finish, &mut touch);
                    }
                    _ => along.run::<V>(&self.fft, lines, [from, work, to], finish, &mut touch),
                }
            }
        }
        touch.finish(block)
    }

    /// The walk over what is fetched meanwhile.
    fn touch<'a>(
        &self,
        block: &LineBlock<'a, V::T>,
        (rows_in, rows_out): (bool, bool),
        stream: bool,
    ) -> Touch<'a, V::T> {
        let kind = self.spec.kind;
        // Gathering and scattering take about as long as a pass each.
        let moves = usize::from(!rows_in) + usize::from(!rows_out);
        let visits = block.lines.div_ceil(V::LINES) * self.fft.n * (self.fft.passes() + moves);
        let reserve = block.store != StoreHint::Plain && !stream;
        Touch::new(block, reserve, (kind.width_in(), kind.width_out()), visits).leave(block, visits)
    }

    /// The walk that takes the next block along.
    ///
    /// # Safety
    /// As for [`Lines::run`]; `table` lists the rows of the next block.
    unsafe fn take<'a>(&self, block: &LineBlock<'a, V::T>, table: *const *mut V::T) -> Touch<'a, V::T> {
        let rows = self.spec.kind.len_in(self.spec.n);
        // SAFETY: the caller's promise.
        let taking = unsafe { Taking::new::<V>((table, rows), block.ahead_lines, block.staging) };
        let vectors = taking.vectors();
        let visits = block.lines / V::LINES * self.fft.n * self.fft.passes();
        Touch::taking(taking, vectors, visits)
    }

    /// How many of `groups` groups go together.
    fn together(&self, groups: usize) -> usize {
        let vector = V::LANES * size_of::<V::T>();
        let hot = HOT_BYTES / (self.area() * size_of::<V::T>());
        // Vectors shorter than a cache line go in company.
        let company = 64usize.div_ceil(vector);
        (hot / company * company).max(company).min(groups.max(1))
    }
}

impl<V: Vector> Lines<V::T> for NativeLines<V> {
    fn block(&self, strided: bool) -> usize {
        if !strided {
            // Enough of short lines for what a block costs to be little.
            return V::LANES.max(8).max(2048 / self.spec.n.max(1)).min(64);
        }
        // Half a kilobyte of neighbours: enough for a memory page to be worth
        // opening. Fewer where the lines would not stay in a second-level cache.
        let bytes = 2 * size_of::<V::T>();
        let fit = (512 << 10) / (bytes * self.spec.n.max(1));
        (512 / bytes).min(fit / V::LINES * V::LINES).max(V::LINES)
    }

    fn scratch(&self, lines: usize) -> usize {
        let kind = self.spec.kind;
        let tables = 2 * Self::table(kind.len_in(self.spec.n)) + Self::table(kind.len_out(self.spec.n));
        let groups = lines.div_ceil(V::LINES).max(1);
        let areas = (groups + self.together(groups)) * self.area();
        tables + 2 * row(lines) + areas + self.fft.spare() * V::LANES
    }

    fn staging_len(&self, lines: usize) -> usize {
        let room = self.spec.n * pitch::<V::T>(lines);
        let complex = matches!(self.spec.kind, LineKind::Forward | LineKind::Backward);
        if complex && room * size_of::<V::T>() <= POCKET_BYTES { room } else { 0 }
    }

    fn staged(&self, staging: *mut V::T, lines: usize) -> Strip<V::T> {
        Strip { ptr: staging, at: 0, len: self.spec.n, step: pitch::<V::T>(lines) as isize, lane: 2 }
    }

    unsafe fn run(&self, block: &LineBlock<'_, V::T>, scratch: &mut [V::T]) -> bool {
        let n = self.spec.n;
        assert!(scratch.len() >= self.scratch(block.lines), "scratch is too short");
        if n == 0 || block.lines == 0 {
            return false;
        }
        if let (Some(along), Some(strips)) = (&self.along, self.stacks(block)) {
            // SAFETY: the caller's promises.
            return unsafe { self.along(along, block, strips, scratch) };
        }
        // SAFETY: the length of the scratch was checked.
        let sheet = unsafe { self.sheet(block, scratch.as_mut_ptr()) };
        let mut touch = match () {
            // SAFETY: the caller's promises of what is ahead and of the pocket.
            () if sheet.take => unsafe { self.take(block, sheet.ahead) },
            // Far rows see to themselves.
            () if sheet.far => Touch::nothing(),
            () => self.touch(block, (sheet.rows_in, sheet.rows_out), sheet.stream),
        };
        let mut first = 0;
        while first < block.lines {
            let mut team = self.team(block, &sheet, first, &mut touch);
            first += team.lines;
            // SAFETY: the caller's promises.
            unsafe {
                match self.spec.kind {
                    LineKind::Forward | LineKind::Backward => self.complex(&mut team),
                    LineKind::RealForward => self.real_forward(&mut team),
                    LineKind::RealBackward => self.real_backward(&mut team),
                    LineKind::R2r { .. } => unreachable!("made of the others"),
                }
            }
        }
        touch.finish(block)
    }
}
