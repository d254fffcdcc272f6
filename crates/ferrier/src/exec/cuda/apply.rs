//! Operators on spectra in a GPU's memory: there, a formula, and back.

use super::array::{DeviceData, DeviceDataMut};
use super::launch;
use super::plan::{BACKWARD, FORWARD, OPERATED, Plan, ROUND, ROUND_IN_PLACE};
use super::touch::{Code, FORMULAS, Operand, Room};
use crate::{Error, Formula, Operator, Real, Result, Tables};

/// The formulas that a plan has on its GPU.
pub(super) struct Formulas<T> {
    room: Room,
    /// For each way to run the plan the text that its kernels were compiled
    /// with, and the numbers of an entry.
    compiled: Vec<Option<(String, usize)>>,
    /// The sets of tables that the GPU has, and which comes next.
    sets: Vec<Vec<T>>,
    next: usize,
    /// Of the call that is under way.
    pub operand: Operand<T>,
}

impl<T: Real> Formulas<T> {
    pub fn new(room: Room, variants: usize) -> Self {
        let sets = Vec::with_capacity(FORMULAS);
        Formulas { room, compiled: vec![None; variants], sets, next: 0, operand: Operand::default() }
    }
}

impl<T: Real> Plan<T> {
    /// `input`, forward, each mode through the formula of `operator`, and back
    /// to `output`, which lies like the input; as [`crate::Plan::apply`].
    /// Collective; allocates nothing but where a formula comes for the first time,
    /// which is compiled then.
    ///
    /// The last axis is transformed, the formula applied and the axis
    /// transformed back in one pass, while its lines are in registers.
    ///
    /// # Errors
    /// [`Error::Choice`] for a plan of a problem without
    /// [`operators`](crate::Problem::operators), and for an operator without a
    /// [`formula`](Operator::formula); [`Error::Array`] for tables that are too
    /// short; [`Error::Device`] for a formula that does not compile; else as
    /// [`forward`](Self::forward).
    pub fn apply<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: DeviceData<T>,
        O: DeviceDataMut<T>,
        F: Operator<T> + ?Sized,
    {
        self.take(ROUND, operator)?;
        self.out_of_place(ROUND, input, output)
    }

    /// [`apply`](Self::apply) to an array of [`make_in_place`](Self::make_in_place).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_in_place<A, F>(&mut self, array: &mut A, operator: &F) -> Result<()>
    where
        A: DeviceDataMut<T>,
        F: Operator<T> + ?Sized,
    {
        self.take(ROUND_IN_PLACE, operator)?;
        self.in_place(ROUND_IN_PLACE, array)
    }

    /// [`forward`](Self::forward), with each mode through the formula of
    /// `operator` before it is stored. Collective; allocates as [`apply`](Self::apply).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn forward_with<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: DeviceData<T>,
        O: DeviceDataMut<T>,
        F: Operator<T> + ?Sized,
    {
        self.take(OPERATED + FORWARD, operator)?;
        self.out_of_place(OPERATED + FORWARD, input, output)
    }

    /// [`backward`](Self::backward), with each mode through the formula of
    /// `operator` when it has been loaded; the spectrum stays as it was.
    /// Collective; allocates as [`apply`](Self::apply).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn backward_with<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: DeviceData<T>,
        O: DeviceDataMut<T>,
        F: Operator<T> + ?Sized,
    {
        self.take(OPERATED + BACKWARD, operator)?;
        self.out_of_place(OPERATED + BACKWARD, input, output)
    }

    /// Makes the formula of an operator ready for a call. What is wrong with
    /// the operator itself is wrong on every rank; nobody need be told.
    fn take<F: Operator<T> + ?Sized>(&mut self, which: usize, operator: &F) -> Result<()> {
        if !self.recipe.operators {
            return Err(Error::choice(
                "operators",
                "this plan takes no operators: make it from a problem with `operators(true)`",
            ));
        }
        let Some(formula) = operator.formula() else {
            return Err(Error::choice(
                "operator",
                "this operator has no formula, which a GPU needs: see `Operator::formula`",
            ));
        };
        self.fits(&formula)?;
        let outcome = self.compile(which, Code::of(&formula)).and_then(|()| self.upload(&formula));
        self.or_fail(outcome)
    }

    /// Are there entries for all indices?
    fn fits(&self, formula: &Formula<'_, T>) -> Result<()> {
        let lens = match formula.tables {
            Tables::None => return Ok(()),
            Tables::Real(tables) => tables.map(<[_]>::len),
            Tables::Complex(tables) => tables.map(<[_]>::len),
        };
        let needed = self.formulas.room.lens;
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

    /// Compiles the passes that the operator goes with, unless they are.
    fn compile(&mut self, which: usize, code: Code<'_>) -> Result<()> {
        let known = &self.formulas.compiled[which];
        if known.as_ref().is_some_and(|(text, entry)| text == code.text && *entry == code.entry) {
            return Ok(());
        }
        self.formulas.compiled[which] = None;
        for (number, pass) in self.variants[which].passes.iter().enumerate() {
            if launch::is_called(pass) {
                self.functions[which][number] = launch::kernels::<T>(&self.gpu, pass, code)?;
            }
        }
        self.formulas.compiled[which] = Some((code.text.into(), code.entry));
        Ok(())
    }

    /// Sees that the tables of a formula are on the GPU: in a set that is
    /// there already, or in the place of the oldest.
    fn upload(&mut self, formula: &Formula<'_, T>) -> Result<()> {
        let room = self.formulas.room;
        let entry = Code::of(formula).entry;
        let tables = match formula.tables {
            Tables::None => [&[][..]; 3],
            Tables::Real(tables) => tables,
            Tables::Complex(tables) => tables.map(crate::Data::numbers),
        };
        self.formulas.operand = Operand { tables: [0; 3], constants: formula.constants };
        if entry == 0 {
            return Ok(());
        }
        let len = |axis: usize| room.lens[axis] * entry;
        let zeros = |axis: usize| len(axis) - tables[axis].len();
        let numbers = (0..3)
            .flat_map(|axis| tables[axis].iter().copied().chain(std::iter::repeat_n(T::zero(), zeros(axis))));
        let same = |set: &Vec<T>| set.len() == room.numbers(entry) && set.iter().copied().eq(numbers.clone());
        let known = self.formulas.sets.iter().position(same);
        let set = match known {
            Some(set) => set,
            None => {
                let set = self.formulas.next % FORMULAS;
                let all: Vec<T> = numbers.collect();
                // Kernels that still use the oldest set end first.
                self.stream.synchronize()?;
                self.tables.upload(room.place::<T>(set), &all)?;
                match self.formulas.sets.get_mut(set) {
                    Some(old) => *old = all,
                    None => self.formulas.sets.push(all),
                }
                self.formulas.next += 1;
                set
            }
        };
        let start = self.tables.start() + room.place::<T>(set) as u64;
        let number = size_of::<T>();
        let at = [0, len(0), len(0) + len(1)];
        self.formulas.operand.tables = at.map(|at| start + (at * number) as u64);
        Ok(())
    }
}
