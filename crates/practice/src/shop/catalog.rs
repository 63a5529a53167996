//! The shop's catalogue: categories and their products, loaded from `data/shop/`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::data;

/// A product category. All its products have the same specifications.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Category {
    pub(crate) slug: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    #[serde(borrow)]
    pub(crate) specifications: [&'static str; 4],
    pub(crate) products: Vec<Product>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Product {
    pub(crate) slug: &'static str,
    pub(crate) name: &'static str,
    pub(crate) brand: &'static str,
    pub(crate) price_cents: u32,
    /// Tenths of a star, 0 to 50.
    pub(crate) rating: u32,
    pub(crate) reviews: u32,
    pub(crate) stock: u32,
    pub(crate) colour: &'static str,
    /// Values of the category's specifications, in the same order.
    #[serde(borrow)]
    pub(crate) specifications: [&'static str; 4],
    pub(crate) description: &'static str,
}

static CATEGORIES: LazyLock<[Category; 8]> = LazyLock::new(|| {
    [
        data::load!("shop/lighting.json"),
        data::load!("shop/kitchen.json"),
        data::load!("shop/audio.json"),
        data::load!("shop/garden.json"),
        data::load!("shop/office.json"),
        data::load!("shop/outdoor.json"),
        data::load!("shop/toys.json"),
        data::load!("shop/books.json"),
    ]
});

/// All categories, in the order in which the shop shows them.
pub(crate) fn categories() -> &'static [Category] {
    &*CATEGORIES
}

/// All products with their categories, in the order of the categories.
pub(crate) fn products() -> impl Iterator<Item = (&'static Category, &'static Product)> {
    categories().iter().flat_map(|category| category.products.iter().map(move |product| (category, product)))
}

pub(crate) fn find(slug: &str) -> Option<(&'static Category, &'static Product)> {
    products().find(|(_, product)| product.slug == slug)
}

/// All brands without duplicates, in alphabetical order.
pub(crate) fn brands() -> Vec<&'static str> {
    let mut brands: Vec<_> = products().map(|(_, product)| product.brand).collect();
    brands.sort_unstable();
    brands.dedup();
    brands
}

/// Formats an amount in cents: `5900` is `$59.00`.
pub(crate) fn format_price(cents: u32) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

impl Product {
    pub(crate) fn price(&self) -> String {
        format_price(self.price_cents)
    }

    pub(crate) fn stars(&self) -> String {
        format!("{}.{}", self.rating / 10, self.rating % 10)
    }

    pub(crate) fn in_stock(&self) -> bool {
        self.stock > 0
    }

    /// The first letters of the category and the position in it, counted from 101: `LIG-103`.
    pub(crate) fn article_number(&self, category: &Category) -> String {
        let position =
            category.products.iter().position(|product| product.slug == self.slug).unwrap_or_default();
        format!("{}-{}", category.slug[..3].to_uppercase(), 101 + position)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn products_are_complete_and_unique() {
        let all: Vec<_> = products().collect();
        assert!(all.len() >= 60, "only {} products", all.len());
        let slugs: HashSet<_> = all.iter().map(|(_, product)| product.slug).collect();
        let names: HashSet<_> = all.iter().map(|(_, product)| product.name).collect();
        assert_eq!((slugs.len(), names.len()), (all.len(), all.len()));
        for (_, product) in all {
            // The cart's cookie relies on these characters.
            assert!(product.slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert!(product.price_cents > 0 && (10..=50).contains(&product.rating), "{}", product.slug);
            assert!(product.specifications.iter().all(|value| !value.is_empty()), "{}", product.slug);
        }
    }

    #[test]
    fn some_products_are_out_of_stock() {
        assert!(products().filter(|(_, product)| !product.in_stock()).count() >= 5);
    }
}
