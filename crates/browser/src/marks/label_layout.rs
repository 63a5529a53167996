//! Chooses the positions of the labels. The default position is above the element; a label that would cover another
//! element or label there is moved to a free position nearby.

use super::canvas::Area;

/// An element closer to the top edge than this gets its label below.
const MIN_TOP: i64 = 20;
/// An element at least this many times wider than its label can have the label at its right end.
const MIN_WIDTH_RATIO: i64 = 4;

/// An element and the size of its label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelledElement {
    pub(crate) area: Area,
    /// Width and height of the label.
    pub(crate) label_size: (i64, i64),
    /// Whether this is a drop-down row, which has space for the label at its right end.
    pub(crate) is_row: bool,
}

/// Returns the area of each label, in the order of the elements, all inside the image.
pub(crate) fn layout_labels(elements: &[LabelledElement], image_size: (u32, u32)) -> Vec<Area> {
    let mut labels: Vec<Area> = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let is_free = |area: &Area| {
            let others = elements.iter().enumerate().filter(|(other, _)| *other != index);
            let covers_element = others
                .map(|(_, other)| other.area)
                .any(|other| !other.contains(element.area) && overlaps_too_much(*area, other));
            !covers_element && !labels.iter().any(|label| overlaps_too_much(*area, *label))
        };
        let default = default_area(element, image_size);
        let area = if element.is_row {
            right_end(element)
        } else if is_free(&default) {
            default
        } else {
            let mut alternatives = alternative_areas(element).into_iter().flatten();
            alternatives.find(|area| is_inside(*area, image_size) && is_free(area)).unwrap_or(default)
        };
        labels.push(area);
    }
    labels
}

/// Above the top-right corner, or below the bottom-right corner if there is no space above.
fn default_area(element: &LabelledElement, image_size: (u32, u32)) -> Area {
    let (width, height) = element.label_size;
    let (image_width, image_height) = (i64::from(image_size.0), i64::from(image_size.1));
    let Area { top, right, bottom, .. } = element.area;
    let right = right.clamp(width.min(image_width), image_width);
    let top = if top < MIN_TOP { bottom } else { top - height };
    let top = top.clamp(0, (image_height - height).max(0));
    Area { left: right - width, top, right, bottom: top + height }
}

/// To the left of the element, to its right, and on its right end if it is wide enough.
fn alternative_areas(element: &LabelledElement) -> [Option<Area>; 3] {
    let (width, height) = element.label_size;
    let Area { left, right, top, bottom } = element.area;
    let middle = top + (bottom - top - height) / 2;
    let beside = |left: i64| Area { left, top: middle, right: left + width, bottom: middle + height };
    let is_wide = right - left >= MIN_WIDTH_RATIO * width && bottom - top >= height;
    [Some(beside(left - width)), Some(beside(right)), is_wide.then(|| right_end(element))]
}

fn right_end(element: &LabelledElement) -> Area {
    let (width, height) = element.label_size;
    let Area { top, right, bottom, .. } = element.area;
    let top = top + (bottom - top - height) / 2;
    Area { left: right - width, top, right, bottom: top + height }
}

/// Whether more than a third of the label is on `other`.
fn overlaps_too_much(label: Area, other: Area) -> bool {
    3 * label.overlap(other) > label.size()
}

fn is_inside(area: Area, image_size: (u32, u32)) -> bool {
    let image = Area { left: 0, top: 0, right: i64::from(image_size.0), bottom: i64::from(image_size.1) };
    image.contains(area)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE_SIZE: (u32, u32) = (400, 300);

    fn element(left: i64, top: i64, width: i64, height: i64) -> LabelledElement {
        let area = Area { left, top, right: left + width, bottom: top + height };
        LabelledElement { area, label_size: (20, 16), is_row: false }
    }

    fn corners(elements: &[LabelledElement]) -> Vec<(i64, i64)> {
        layout_labels(elements, IMAGE_SIZE).iter().map(|area| (area.left, area.top)).collect()
    }

    #[test]
    fn label_is_above_unless_near_the_top() {
        assert_eq!(corners(&[element(100, 100, 80, 30)]), [(160, 84)]);
        assert_eq!(corners(&[element(100, 5, 80, 30)]), [(160, 35)]);
    }

    #[test]
    fn label_stays_inside_the_image() {
        assert_eq!(corners(&[element(-50, 100, 55, 30)]), [(0, 84)]);
        assert_eq!(corners(&[element(380, 100, 90, 30)]), [(380, 84)]);
        assert_eq!(corners(&[element(100, 2, 80, 297)]), [(160, 284)]);
        let huge = Area { left: i64::MIN / 4, top: i64::MIN / 4, right: i64::MAX / 4, bottom: i64::MAX / 4 };
        let label =
            layout_labels(&[LabelledElement { area: huge, label_size: (20, 16), is_row: false }], IMAGE_SIZE)
                [0];
        assert!(is_inside(label, IMAGE_SIZE), "{label:?}");
    }

    #[test]
    fn label_covering_another_element_moves_beside() {
        let boxes = [element(100, 100, 18, 18), element(100, 120, 18, 18)];
        assert_eq!(corners(&boxes), [(98, 84), (80, 121)]);
    }

    #[test]
    fn wide_element_has_label_at_its_end() {
        let list = [element(10, 100, 300, 24), element(10, 124, 300, 24)];
        let rows = [LabelledElement { is_row: true, ..list[0] }, LabelledElement { is_row: true, ..list[1] }];
        assert_eq!(corners(&rows), [(290, 104), (290, 128)]);
        let right_neighbour = element(310, 0, 90, 300);
        let left_neighbour = element(0, 100, 9, 60);
        assert_eq!(corners(&[list[0], list[1], right_neighbour, left_neighbour])[1], (290, 128));
    }

    #[test]
    fn container_does_not_block_the_label() {
        let card = element(0, 0, 400, 300);
        assert_eq!(corners(&[card, element(100, 100, 80, 30)])[1], (160, 84));
    }

    #[test]
    fn default_position_is_used_without_alternative() {
        let grid: Vec<LabelledElement> =
            (0..9).map(|index| element(100 + index % 3 * 30, 100 + index / 3 * 24, 30, 24)).collect();
        assert_eq!(corners(&grid)[4], (140, 108));
    }
}
