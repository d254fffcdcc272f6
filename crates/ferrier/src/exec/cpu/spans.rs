//! Arrays in main memory as inputs and outputs of plans.

use super::executor::Cpu;
use crate::Real;
use crate::exec::data::sealed::Token;
use crate::exec::data::{Data, DataMut, Input, Output, Span};
use crate::exec::field_table::FieldTable;

impl<T: Real, D: Data<T> + ?Sized> Input<T, Cpu> for D {
    fn with_span<R>(&self, (): &(), fields: &mut FieldTable, work: impl FnOnce(Span, &FieldTable) -> R) -> R {
        let is_real = self.is_real();
        fields.clear();
        self.each_field(Token, &mut |scalars| fields.push(scalars.as_ptr() as usize, scalars.len()));
        let spans = fields.spans();
        let scalars = if spans.is_some() { &[] } else { self.scalars() };
        let (start, scalars) = (scalars.as_ptr() as usize, scalars.len());
        work(Span { start, scalars, is_real, fields: spans }, fields)
    }
}

impl<T: Real, D: DataMut<T> + ?Sized> Output<T, Cpu> for D {
    fn with_span_mut<R>(
        &mut self,
        (): &(),
        fields: &mut FieldTable,
        work: impl FnOnce(Span, &FieldTable) -> R,
    ) -> R {
        let is_real = self.is_real();
        fields.clear();
        self.each_field_mut(Token, &mut |scalars| fields.push(scalars.as_mut_ptr() as usize, scalars.len()));
        let spans = fields.spans();
        let scalars = if spans.is_some() { &mut [] } else { self.scalars_mut() };
        let (start, scalars) = (scalars.as_mut_ptr() as usize, scalars.len());
        work(Span { start, scalars, is_real, fields: spans }, fields)
    }
}
