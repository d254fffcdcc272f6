//! The formulas of operators on a plan's GPU.

use super::fused_op::{Code, FORMULA_SETS, FormulaRoom, Operand};
use super::gpu::Gpu;
use super::launch;
use super::memory::{Block, Stream};
use super::work::CudaWork;
use crate::exec::variant::BoundPass;
use crate::{Error, Formula, Operator, Real, Result, Tables};

/// The formulas of a plan.
pub(super) struct Formulas<T> {
    room: FormulaRoom,
    /// For each kind of call the text that its kernels were compiled with, and the scalars of an entry.
    compiled: Vec<Option<(String, usize)>>,
    /// The sets of tables on the GPU, and the index of the one to replace next.
    sets: Vec<Vec<T>>,
    next: usize,
}

impl<T: Real> Formulas<T> {
    pub fn new(room: FormulaRoom, variants: usize) -> Self {
        let sets = Vec::with_capacity(FORMULA_SETS);
        Formulas { room, compiled: vec![None; variants], sets, next: 0 }
    }

    /// Prepares the formula of an operator for a call of a kind: compiles the passes that use it, unless they
    /// are compiled, and uploads its tables, unless they are on the GPU.
    pub fn prepare(
        &mut self,
        (gpu, stream, tables): (&Gpu, &Stream, &Block),
        which: usize,
        passes: &mut [BoundPass<CudaWork>],
        operator: &dyn Operator<T>,
    ) -> Result<Operand<T>> {
        let Some(formula) = operator.formula() else {
            return Err(Error::choice(
                "operator",
                "this operator has no formula, which a GPU needs: see `Operator::formula`",
            ));
        };
        self.fits(&formula)?;
        let code = Code::of(&formula);
        let known = &self.compiled[which];
        if known.as_ref().is_none_or(|(text, entry)| text != code.text || *entry != code.entry) {
            self.compiled[which] = None;
            for pass in passes.iter_mut().filter(|pass| pass.work.has_operator()) {
                pass.work.functions = launch::kernels::<T>(gpu, &pass.work, code)?;
            }
            self.compiled[which] = Some((code.text.into(), code.entry));
        }
        self.upload(&formula, stream, tables)
    }

    /// Checks that tables have entries for all indices.
    fn fits(&self, formula: &Formula<'_, T>) -> Result<()> {
        let lens = match formula.tables {
            Tables::None => return Ok(()),
            Tables::Real(tables) => tables.map(<[_]>::len),
            Tables::Complex(tables) => tables.map(<[_]>::len),
        };
        let needed = self.room.lens;
        match (0..3).find(|&axis| lens[axis] != needed[axis] && lens[axis] != 0) {
            None => Ok(()),
            Some(axis) => Err(Error::array(
                "table of a formula",
                None,
                format!("empty or {} entries, as many as the spectrum has, along axis {axis}", needed[axis]),
                lens[axis].to_string(),
            )),
        }
    }

    /// The tables of a formula on the GPU: in an existing set, or in the place of the oldest.
    fn upload(&mut self, formula: &Formula<'_, T>, stream: &Stream, block: &Block) -> Result<Operand<T>> {
        let room = self.room;
        let entry = Code::of(formula).entry;
        let tables = match formula.tables {
            Tables::None => [&[][..]; 3],
            Tables::Real(tables) => tables,
            Tables::Complex(tables) => tables.map(crate::Data::scalars),
        };
        if entry == 0 {
            return Ok(Operand { tables: [0; 3], constants: formula.constants });
        }
        let len = |axis: usize| room.lens[axis] * entry;
        let zeros = |axis: usize| len(axis) - tables[axis].len();
        let scalars = (0..3)
            .flat_map(|axis| tables[axis].iter().copied().chain(std::iter::repeat_n(T::zero(), zeros(axis))));
        let same = |set: &Vec<T>| set.len() == room.scalars(entry) && set.iter().copied().eq(scalars.clone());
        let known = self.sets.iter().position(same);
        let set = match known {
            Some(set) => set,
            None => {
                let set = self.next % FORMULA_SETS;
                let all: Vec<T> = scalars.collect();
                // Waits for kernels that use the oldest set.
                stream.synchronize()?;
                block.upload(room.place::<T>(set), &all)?;
                match self.sets.get_mut(set) {
                    Some(old) => *old = all,
                    None => self.sets.push(all),
                }
                self.next += 1;
                set
            }
        };
        let start = block.start() + room.place::<T>(set) as u64;
        let at = [0, len(0), len(0) + len(1)];
        Ok(Operand {
            tables: at.map(|at| start + (at * size_of::<T>()) as u64),
            constants: formula.constants,
        })
    }
}
