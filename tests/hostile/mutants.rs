//! Files made worse at random, by seeds.
