//! Arrays in main memory as inputs and outputs of plans.

use super::executor::Cpu;
use crate::Real;
use crate::exec::data::{Data, DataMut, Input, Output, Span};

impl<T: Real, D: Data<T> + ?Sized> Input<T, Cpu> for D {
    fn with_span<R>(&self, (): &(), work: impl FnOnce(Span) -> R) -> R {
        let (is_real, scalars) = (self.is_real(), self.scalars());
        work(Span { start: scalars.as_ptr() as usize, scalars: scalars.len(), is_real })
    }
}

impl<T: Real, D: DataMut<T> + ?Sized> Output<T, Cpu> for D {
    fn with_span_mut<R>(&mut self, (): &(), work: impl FnOnce(Span) -> R) -> R {
        let is_real = self.is_real();
        let scalars = self.scalars_mut();
        work(Span { start: scalars.as_mut_ptr() as usize, scalars: scalars.len(), is_real })
    }
}
