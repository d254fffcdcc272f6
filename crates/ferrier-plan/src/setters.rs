//! Setters of public fields, for values that are built by a chain of calls.

/// Defines methods that set the field of the same name and return the value. Each line names the method, its
/// argument and the new value of the field: `exchange(name: impl Into<String>) = Some(name.into());`.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $kind:ty) = $new:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $value: $kind) -> Self {
            self.$name = $new;
            self
        }
    )*};
}

pub(crate) use setters;
