//! Chance that repeats: the same seed gives the same throws on every machine (SplitMix64).

#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn trial(seed: u64, number: u64) -> u64 {
        // Short enough to be typed.
        Self::new(seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F)).next() >> 24
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not with, the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T], otherwise: T) -> T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or_default();
        choices.get(index).cloned().unwrap_or(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn a_seed_gives_the_same_throws_again() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            [dice.below(1000), dice.below(1000), dice.below(1000)]
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert_eq!(Dice::trial(1, 2), Dice::trial(1, 2));
        assert_ne!(Dice::trial(1, 2), Dice::trial(1, 3));
    }
}
