//! The axes of a sweep: `key=lo..hi:step`, `key=a,b,c`, or `preset=a,b`.

use hitreg_netcode::settings::{KEYS, Settings, ValueKind};

/// The key of an axis of presets.
pub const PRESET: &str = "preset";

/// The limit on the number of values of one axis.
const VALUES_MAX: i64 = 1_000;

/// A setting, or the preset, with the values to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    key: String,
    values: Vec<String>,
}

impl Axis {
    /// Reads `key=lo..hi:step`, `key=a,b,c`, or `preset=a,b`. Ranges are whole numbers, and the default step is 1. `hi`
    /// is included if a step reaches it. Every value is checked.
    ///
    /// # Errors
    /// When the text is not a valid axis; the error describes the correct form.
    pub fn parse(text: &str) -> Result<Axis, String> {
        Axis::read(text, false)
    }

    /// Reads an axis for a build, which may have settings of its own. Their values are not checked.
    ///
    /// # Errors
    /// When the text is not a valid axis.
    pub fn of_build(text: &str) -> Result<Axis, String> {
        Axis::read(text, true)
    }

    fn read(text: &str, is_of_build: bool) -> Result<Axis, String> {
        let (key, given) = Settings::pair(text).map_err(|error| error.to_string())?;
        let key = key.to_owned();
        if given.is_empty() {
            return Err(format!(
                "`{text}` has no values: give a range, as in --set {key}=lo..hi:step, or a list, as in --set {key}=a,b,c"
            ));
        }
        let mut settings = Settings::default();
        let is_own = is_of_build && key != PRESET && !Settings::is_known(&key);
        let values: Vec<String> = match given.split_once("..") {
            Some((low, rest)) if key != PRESET => range(&key, given, (low, rest), is_own)?,
            _ => given.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        for (place, value) in values.iter().enumerate() {
            let set = match key.as_str() {
                PRESET => settings.apply_preset(value),
                _ if is_own => Ok(()),
                key => settings.set(key, value),
            };
            set.map_err(|error| error.to_string())?;
            if values[..place].contains(value) {
                return Err(format!("`{key}` has the value {value} twice: leave one out"));
            }
        }
        Ok(Axis { key, values })
    }

    /// `PRESET`, or the setting's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The values, in the order given; at least one.
    pub fn values(&self) -> &[String] {
        &self.values
    }
}

fn range(key: &str, range: &str, (low, rest): (&str, &str), is_own: bool) -> Result<Vec<String>, String> {
    let bad = || {
        format!("`{range}` is not a range of `{key}`: write lo..hi:step in whole numbers, or a list: --set {key}=a,b,c")
    };
    match KEYS.iter().find(|k| k.name == key).map(|k| k.kind) {
        Some(kind @ (ValueKind::Flag | ValueKind::Choice { .. })) => {
            let takes = kind.takes();
            return Err(format!("`{key}` takes {takes}, so it has no ranges: give a list, such as --set {key}=a,b"));
        }
        Some(ValueKind::Number { .. } | ValueKind::Rate { .. }) => {}
        // The check of the setting's name, later, reports an unknown key together with the nearest known key.
        None if !is_own => return Ok(vec![low.to_owned()]),
        None => {}
    }
    let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let number = |text: &str| text.trim().parse::<i32>().map(i64::from).map_err(|_| bad());
    let (low, high, step) = (number(low)?, number(high)?, number(step)?);
    if step < 1 || low > high {
        return Err(format!(
            "`{range}` of `{key}` is empty: write lo..hi:step with lo below hi and a step of at least 1"
        ));
    }
    let values = (high - low) / step + 1;
    if values > VALUES_MAX {
        return Err(format!("`{range}` of `{key}` has {values} values; the limit is {VALUES_MAX}: use a larger step"));
    }
    Ok((0..values).map(|n| (low + n * step).to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse(text).expect(text).values
    }

    #[test]
    fn a_build_has_settings_of_its_own() {
        let values = |text: &str| Axis::of_build(text).map(|axis| axis.values);
        assert_eq!(values("sv_gravity=600..800:100").as_deref(), Ok(&["600", "700", "800"].map(str::to_owned)[..]));
        assert_eq!(values("weapon=rifle,knife").as_deref(), Ok(&["rifle", "knife"].map(str::to_owned)[..]));
        for (text, said) in [
            ("sv_gravity=600..low", "lo..hi:step"),
            ("sv_gravity=600,600", "twice"),
            ("interpolation.lerp_ms=0..2000:1000", "from 0 to 1000"),
            ("preset=halflife", "did you mean `half-life`?"),
        ] {
            assert!(values(text).is_err_and(|error| error.contains(said)), "{text}");
        }
    }

    fn error(text: &str) -> String {
        Axis::parse(text).expect_err(text)
    }

    #[test]
    fn ranges_and_lists_are_read() {
        assert_eq!(values("interpolation.lerp_ms=0..100:25"), ["0", "25", "50", "75", "100"]);
        assert_eq!(values("interpolation.lerp_ms=0..99:50"), ["0", "50"]);
        assert_eq!(values("client.redundancy=1..3"), ["1", "2", "3"]);
        assert_eq!(values("prediction.push_latency_ms=-100..0:50"), ["-100", "-50", "0"]);
        assert_eq!(values(" interpolation.mode = history, off "), ["history", "off"]);
        assert_eq!(values("lag_compensation.enabled=true,false"), ["true", "false"]);
        assert_eq!(values("server.tick_hz=30"), ["30"]);
        assert_eq!(values("preset=half-life,quake3"), ["half-life", "quake3"]);
    }

    #[test]
    fn errors_of_axes_name_the_correct_form() {
        for (text, said) in [
            ("interpolation.lerp_ms", "write KEY=VALUE"),
            ("interpolation.lerp_ms=", "has no values"),
            ("interpolation.lerp=0..100:5", "did you mean `interpolation.lerp_ms`?"),
            ("interpolation.lerp_ms=0..2000:1000", "from 0 to 1000"),
            ("interpolation.lerp_ms=a..b", "lo..hi:step"),
            ("interpolation.lerp_ms=0..100:0", "a step of at least 1"),
            ("interpolation.lerp_ms=100..0:10", "a step of at least 1"),
            ("server.rate_bytes_per_s=500..9000000", "use a larger step"),
            ("interpolation.mode=off..history", "give a list"),
            ("interpolation.mode=off,linear", "one of off"),
            ("interpolation.lerp_ms=50,50", "twice"),
            ("preset=halflife", "did you mean `half-life`?"),
        ] {
            assert!(error(text).contains(said), "{text}: {}", error(text));
        }
    }
}
