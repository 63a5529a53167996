//! The product search: a filter read from the query string, applied to the catalogue. Has no side effects.

use super::catalog::{Category, Product, products};
use crate::forms::{Fields, query_string};

pub(crate) const PAGE_SIZE: usize = 12;

/// A product with its category.
type Found = (&'static Category, &'static Product);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Relevance,
    PriceUp,
    PriceDown,
    Rating,
    Name,
}

impl Sort {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Relevance, "relevance", "Best match"),
        (Self::PriceUp, "price-asc", "Price: low to high"),
        (Self::PriceDown, "price-desc", "Price: high to low"),
        (Self::Rating, "rating", "Customer rating"),
        (Self::Name, "name", "Name"),
    ];

    fn parse(value: &str) -> Self {
        Self::ALL.iter().find(|(_, known, _)| *known == value).map(|(sort, _, _)| *sort).unwrap_or_default()
    }

    fn value(self) -> &'static str {
        Self::ALL.iter().find(|(sort, _, _)| *sort == self).map_or("", |(_, value, _)| value)
    }
}

/// What a visitor searches for. Invalid values are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProductFilter {
    pub(crate) query: String,
    pub(crate) categories: Vec<String>,
    pub(crate) brand: String,
    pub(crate) min_cents: Option<u32>,
    pub(crate) max_cents: Option<u32>,
    pub(crate) min_rating: Option<u32>,
    pub(crate) in_stock: bool,
    pub(crate) sort: Sort,
}

impl ProductFilter {
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        Self {
            query: fields.get("q").to_owned(),
            categories: fields.all("category").filter(|slug| !slug.is_empty()).map(str::to_owned).collect(),
            brand: fields.get("brand").to_owned(),
            min_cents: parse_cents(fields.get("min")),
            max_cents: parse_cents(fields.get("max")),
            min_rating: parse_cents(fields.get("rating")).map(|hundredths| hundredths / 10),
            in_stock: fields.has("in_stock"),
            sort: Sort::parse(fields.get("sort")),
        }
    }

    /// Returns the URL of one page of the results.
    pub(crate) fn url(&self, page: usize) -> String {
        let amount = |cents: Option<u32>| cents.map(format_amount).unwrap_or_default();
        let mut pairs = vec![("q", self.query.clone())];
        pairs.extend(self.categories.iter().map(|slug| ("category", slug.clone())));
        pairs.push(("brand", self.brand.clone()));
        pairs.push(("min", amount(self.min_cents)));
        pairs.push(("max", amount(self.max_cents)));
        pairs.push(("rating", amount(self.min_rating.map(|tenths| tenths * 10))));
        pairs.push(("in_stock", if self.in_stock { "1".to_owned() } else { String::new() }));
        let sort = if self.sort == Sort::Relevance { "" } else { self.sort.value() };
        pairs.push(("sort", sort.to_owned()));
        pairs.push(("page", if page > 1 { page.to_string() } else { String::new() }));
        format!("/shop/search?{}", query_string(pairs))
    }

    pub(crate) fn results(&self) -> Vec<Found> {
        let words: Vec<String> = self.query.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<(usize, Found)> = products()
            .filter(|found| self.matches(found))
            .filter_map(|found| Some((score(&words, found)?, found)))
            .collect();
        match self.sort {
            Sort::Relevance => found.sort_by_key(|(score, _)| std::cmp::Reverse(*score)),
            Sort::PriceUp => found.sort_by_key(|(_, (_, product))| product.price_cents),
            Sort::PriceDown => found.sort_by_key(|(_, (_, product))| std::cmp::Reverse(product.price_cents)),
            Sort::Rating => found.sort_by_key(|(_, (_, product))| std::cmp::Reverse(product.rating)),
            Sort::Name => found.sort_by_key(|(_, (_, product))| product.name),
        }
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn matches(&self, (category, product): &Found) -> bool {
        (self.categories.is_empty() || self.categories.iter().any(|slug| slug == category.slug))
            && (self.brand.is_empty() || self.brand == product.brand)
            && self.min_cents.is_none_or(|min| product.price_cents >= min)
            && self.max_cents.is_none_or(|max| product.price_cents <= max)
            && self.min_rating.is_none_or(|min| product.rating >= min)
            && (!self.in_stock || product.in_stock())
    }
}

/// Rates a match: every word must occur, and occurrences in the name count most. `None` if a word is missing.
fn score(words: &[String], (category, product): Found) -> Option<usize> {
    let weighted_texts = [
        (product.name, 4),
        (product.brand, 3),
        (category.name, 2),
        (product.colour, 2),
        (product.description, 1),
    ];
    words.iter().try_fold(0, |total, word| {
        let best = weighted_texts
            .iter()
            .filter(|(text, _)| text.to_lowercase().contains(word.as_str()))
            .map(|(_, weight)| weight);
        Some(total + best.max()?)
    })
}

/// Parses `12`, `12.5` or `$12.50` to cents.
fn parse_cents(text: &str) -> Option<u32> {
    let amount: f64 = text.trim_start_matches('$').parse().ok()?;
    (0.0..=1_000_000.0).contains(&amount).then(|| (amount * 100.0).round() as u32)
}

/// Formats an amount without currency sign: `12` or `12.50`.
fn format_amount(cents: u32) -> String {
    if cents.is_multiple_of(100) {
        (cents / 100).to_string()
    } else {
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pairs: &[(&str, &str)]) -> ProductFilter {
        ProductFilter::from_fields(&Fields(
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ))
    }

    #[test]
    fn empty_filter_matches_everything() {
        assert_eq!(filter(&[]).results().len(), products().count());
        assert_eq!(
            filter(&[("min", "cheap"), ("sort", "sideways"), ("category", "")]),
            ProductFilter::default()
        );
    }

    #[test]
    fn each_filter_selects_exactly_the_matching_products() {
        type Predicate = fn(&Found) -> bool;
        let cases: [(&str, &str, Predicate); 6] = [
            ("category", "audio", |(category, _)| category.slug == "audio"),
            ("brand", "Ridgeway", |(_, product)| product.brand == "Ridgeway"),
            ("min", "50", |(_, product)| product.price_cents >= 5000),
            ("max", "24.50", |(_, product)| product.price_cents <= 2450),
            ("rating", "4.5", |(_, product)| product.rating >= 45),
            ("in_stock", "1", |(_, product)| product.stock > 0),
        ];
        for (name, value, predicate) in cases {
            let results = filter(&[(name, value)]).results();
            assert!(!results.is_empty() && results.iter().all(predicate), "{name}");
            assert_eq!(results.len(), products().filter(predicate).count(), "{name}");
        }
    }

    #[test]
    fn name_counts_more_than_description() {
        let results = filter(&[("q", "LAMP")]).results();
        assert!(results[0].1.name.to_lowercase().contains("lamp"));
        assert!(results.iter().any(|(_, product)| !product.name.to_lowercase().contains("lamp")));
        assert!(filter(&[("q", "lamp zeppelin")]).results().is_empty());
    }

    #[test]
    fn results_are_sorted() {
        let prices: Vec<_> = filter(&[("sort", "price-desc")])
            .results()
            .iter()
            .map(|(_, product)| product.price_cents)
            .collect();
        assert!(prices.is_sorted_by(|a, b| a >= b));
        assert!(filter(&[("sort", "name")]).results().is_sorted_by_key(|(_, product)| product.name));
    }

    #[test]
    fn url_round_trips_the_filter() {
        let pairs = [
            ("q", "tea & toast"),
            ("category", "audio"),
            ("category", "toys"),
            ("max", "24.5"),
            ("rating", "4.5"),
            ("in_stock", "1"),
            ("sort", "rating"),
        ];
        let expected = filter(&pairs);
        let url = expected.url(2);
        let query = url.split_once('?').unwrap().1;
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fields = Fields(pairs);
        assert_eq!((ProductFilter::from_fields(&fields), fields.number("page")), (expected, Some(2)));
    }
}
