//! The explanation of one correction.

use super::figures::{counted, measure, rounded_ms, seconds};
use super::page::Page;
use super::printable::printable;
use super::why::{known, made, name, picture, title, usercmd};
use crate::why::{CorrectionExplanation, FieldError, Why};
use hitreg_log::trace::schema::ABSENT;

pub(crate) fn correction_answer(correction: &CorrectionExplanation) -> String {
    let cause = match correction.cause.is_empty() {
        true => "cause not known".to_owned(),
        false => cause(correction),
    };
    if let Some(body) = absent_body(correction) {
        return format!("{cause}: for usercmd #{}, {body}.", correction.command);
    }
    let first = correction.errors.first().map_or(String::new(), |first| format!(", {} first", name(&first.field)));
    let fields = match correction.errors.len() as u64 {
        0 => String::new(),
        fields => format!("; {} corrected", counted(fields, "field")),
    };
    let error = correction.error_units.map(|error| format!("{} units off", measure(error)));
    let error = error.unwrap_or_else(|| "with an unknown error".to_owned());
    format!("{cause}: usercmd #{} was predicted {error}{fields}{first}.", correction.command)
}

/// The absent body, in words, if one of the bodies is absent.
fn absent_body(correction: &CorrectionExplanation) -> Option<&'static str> {
    let absent = correction.errors.iter().find(|error| error.field == ABSENT)?;
    match absent.difference() > 0.0 {
        true => Some("the server has no body of the player, and the client predicted one"),
        false => Some("the server has a body of the player, and the client predicted none"),
    }
}

/// The cause of a correction, in words.
fn cause(correction: &CorrectionExplanation) -> String {
    match correction.cause.as_str() {
        "" => "not known".to_owned(),
        cause => name(cause).replace('_', " "),
    }
}

pub(super) fn about_correction(
    page: &mut Page,
    why: &Why,
    correction: &CorrectionExplanation,
    settings: &[(String, String)],
) {
    page.line(&title(why));
    page.note(2, &correction_answer(correction));
    page.blank();
    page.pair("usercmd", &usercmd(correction.command, correction.made_us, (correction.player, settings)));
    let took = made(correction.made_us, (correction.player, settings))
        .zip(correction.at_us)
        .map(|(made, ack)| format!(", {} later", rounded_ms(ack.saturating_sub(made))));
    let acked = known(correction.at_us.map(seconds));
    page.pair("acked", &format!("at {acked}{}", took.unwrap_or_default()));
    let with = correction.commands.map(|commands| {
        let ground = match correction.on_ground {
            Some(true) => " (on ground)",
            Some(false) => " (in air)",
            None => "",
        };
        format!("{}{ground}", counted(u64::from(commands), "usercmd"))
    });
    page.pair("spans", &known(with));
    page.pair("cause", &cause(correction));
    page.pair("evidence", &evidence(&correction.evidence));
    if let Some(body) = absent_body(correction) {
        page.pair("body", body);
        page.pair("run again", &known(correction.reran.map(|reran| counted(u64::from(reran), "usercmd"))));
        return picture(page, why);
    }
    let [place, velocity] = [(correction.error_units, "units"), (correction.velocity_error_units_per_s, "units/s")]
        .map(|(error, unit)| known(error.map(|error| format!("{} {unit}", measure(error)))));
    page.pair("error", &format!("position {place}; velocity {velocity}"));
    page.pair("run again", &known(correction.reran.map(|reran| counted(u64::from(reran), "usercmd"))));
    let row = |error: &FieldError| {
        let [predicted, actual] = [&error.predicted, &error.authoritative].map(|value| value.to_string());
        let difference = error.whole_difference().map_or_else(
            || known(Some(error.difference()).filter(|by| !by.is_nan()).map(measure)),
            |whole| whole.to_string(),
        );
        [name(&error.field), predicted, actual, difference]
    };
    if !correction.errors.is_empty() {
        let rows = correction.errors.iter().take(MOST_FIELDS).map(row);
        page.section("field", &[">predicted", ">actual", ">difference"], rows);
    }
    if correction.errors.len() > MOST_FIELDS {
        page.note(2, &format!("and {}", counted((correction.errors.len() - MOST_FIELDS) as u64, "more field")));
    }
    super::text_diff::body(page, correction);
    picture(page, why);
}

/// The evidence for a cause, in words. Games can have evidence of their own.
fn evidence(evidence: &str) -> String {
    match evidence {
        "snapshot" => "the server's snapshot says so".to_owned(),
        "touched" => "the player touched it when the usercmds ran".to_owned(),
        "reproduced" => AGREES.to_owned(),
        "none" => "none".to_owned(),
        "not looked into" => "not examined, after many corrections without a known cause".to_owned(),
        "" => "not known".to_owned(),
        other => match other.strip_prefix("reproduced: ") {
            Some(assumption) => format!("{AGREES}: {}", printable(assumption)),
            None => printable(other).into_owned(),
        },
    }
}

const AGREES: &str = "running the usercmds again this way gives the server's state";

const MOST_FIELDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::CellValue;

    #[test]
    fn the_answer_names_the_absent_body() {
        let answer = |predicted, authoritative| {
            let [predicted, authoritative] = [predicted, authoritative].map(CellValue::Float);
            let error = FieldError { field: ABSENT.to_owned(), predicted, authoritative };
            correction_answer(&CorrectionExplanation {
                player: 0,
                number: 1,
                of: 1,
                command: 9,
                made_us: None,
                at_us: None,
                commands: None,
                result: "miss".to_owned(),
                on_ground: None,
                error_units: None,
                velocity_error_units_per_s: None,
                reran: None,
                cause: "spawn_or_death".to_owned(),
                evidence: "snapshot".to_owned(),
                errors: vec![error],
                predicted: Vec::new(),
                axes: Default::default(),
            })
        };
        let death =
            "spawn or death: for usercmd #9, the server has no body of the player, and the client predicted one.";
        assert_eq!(answer(0.0, 1.0), death);
        assert!(answer(1.0, 0.0).ends_with("the server has a body of the player, and the client predicted none."));
    }
}
