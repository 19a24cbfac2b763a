//! The known name a user probably meant.

use datafusion::common::utils::datafusion_strsim::levenshtein;

/// The candidate with the smallest edit distance, if no more than a third of the name is wrong.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let allowed = (lower.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("pric", ["auction", "price"]), Some("price"));
        assert_eq!(nearest("PRICE", ["price"]), Some("price"));
        assert_eq!(nearest("seller", ["auction", "price"]), None);
    }
}
