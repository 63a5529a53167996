//! What the shop sells: hand-written tables, one a category, and the one list made of them.

mod home;
mod leisure;
mod outside;
mod work;

/// A shelf of the shop. Every product of it has the same specifications.
#[derive(Debug)]
pub(crate) struct Category {
    pub(crate) slug: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) specifications: [&'static str; 4],
    pub(crate) products: &'static [Product],
}

#[derive(Debug)]
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
    /// Values for the category's specifications, in its order.
    pub(crate) specifications: [&'static str; 4],
    pub(crate) description: &'static str,
}

pub(crate) const CATEGORIES: [&Category; 8] = [
    &home::LIGHTING,
    &home::KITCHEN,
    &leisure::AUDIO,
    &outside::GARDEN,
    &work::OFFICE,
    &outside::OUTDOOR,
    &leisure::TOYS,
    &work::BOOKS,
];

/// Every product with its category, in shelf order.
pub(crate) fn products() -> impl Iterator<Item = (&'static Category, &'static Product)> {
    CATEGORIES
        .into_iter()
        .flat_map(|category| category.products.iter().map(move |product| (category, product)))
}

pub(crate) fn find(slug: &str) -> Option<(&'static Category, &'static Product)> {
    products().find(|(_, product)| product.slug == slug)
}

/// Every brand once, in alphabetical order.
pub(crate) fn brands() -> Vec<&'static str> {
    let mut brands: Vec<_> = products().map(|(_, product)| product.brand).collect();
    brands.sort_unstable();
    brands.dedup();
    brands
}

/// `5900` is `$59.00`.
pub(crate) fn money(cents: u32) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

impl Product {
    pub(crate) fn price(&self) -> String {
        money(self.price_cents)
    }

    pub(crate) fn stars(&self) -> String {
        format!("{}.{}", self.rating / 10, self.rating % 10)
    }

    pub(crate) fn in_stock(&self) -> bool {
        self.stock > 0
    }

    /// Letters of the shelf, then the place on it: `LIG-103`.
    pub(crate) fn article_number(&self, category: &Category) -> String {
        let place =
            category.products.iter().position(|product| product.slug == self.slug).unwrap_or_default();
        format!("{}-{}", category.slug[..3].to_uppercase(), 101 + place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_product_is_whole_and_has_its_own_address() {
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
    fn every_shelf_has_something_sold_out_somewhere() {
        assert!(products().filter(|(_, product)| !product.in_stock()).count() >= 5);
    }
}
