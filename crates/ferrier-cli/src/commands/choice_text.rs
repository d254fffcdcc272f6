//! A choice as text.

use ferrier::Choice;

/// The fields of a choice that differ from the default.
pub fn choice_text(choice: &Choice) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    let usual = serde_json::to_value(Choice::default()).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten().filter(|(name, value)| usual[*name] != **value);
    let fields: Vec<_> =
        fields.map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"'))).collect();
    if fields.is_empty() { "the planner's default".into() } else { fields.join(", ") }
}
