// Values of inputs whose keyboard input is not plain text: date, time, month, week, colour, range. A value is accepted in
// the form that the input itself uses (2012-09-10) and in the forms that people write (09/10/2012, Sep 10, 2012).

const PICKER_TYPES = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
const PICKER_EXAMPLES = {
  date: '2012-09-10', time: '13:45', month: '2012-09', week: '2012-W37', 'datetime-local': '2012-09-10T13:45', color: '#ff8800', range: '8',
};

// Their parts can be filled by keys.
const KEYED_TYPES = new Set(['date', 'time', 'month', 'week', 'datetime-local']);

const MONTH_NAMES = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const monthNumber = (name) => MONTH_NAMES.indexOf(name.slice(0, 3).toLowerCase()) + 1;
const padded = (number, length = 2) => String(Number(number)).padStart(length, '0');
const isoMonth = (year, month) => `${padded(year, 4)}-${padded(month)}`;
const isoDate = (year, month, day) => `${isoMonth(year, month)}-${padded(day)}`;

// Whether the locale of the page writes the day before the month.
const isDayFirst = () => {
  const order = new Intl.DateTimeFormat(navigator.language).formatToParts(0).map((part) => part.type);
  return order.indexOf('day') < order.indexOf('month');
};
// 13/10/2012 and 10.09.2012 have the day first everywhere.
const fromNumericDate = ([, first, separator, second, year]) =>
  first > 12 || separator === '.' || (isDayFirst() && second <= 12) ? isoDate(year, second, first) : isoDate(year, first, second);

// For each type: a pattern, and the value that the input takes for its match.
const DATE_FORMS = [
  [/^((?:19|20)\d\d)(\d\d)(\d\d)$/, ([, year, month, day]) => isoDate(year, month, day)],
  [/^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})$/, ([, year, month, day]) => isoDate(year, month, day)],
  [/^(\d{1,2})([-/. ])(\d{1,2})[-/. ](\d{4})$/, fromNumericDate],
  [/^([a-z]{3,9})\.? +(\d{1,2})(?:st|nd|rd|th)?,? +(\d{4})$/i, ([, month, day, year]) => isoDate(year, monthNumber(month), day)],
  [/^(\d{1,2})(?:st|nd|rd|th|\.)? +([a-z]{3,9})\.?,? +(\d{4})$/i, ([, day, month, year]) => isoDate(year, monthNumber(month), day)],
];
const TIME_FORMS = [
  [
    /^(\d{1,2})(?:[:.](\d{2}))?(?::(\d{2}))? *(?:([ap])\.?m\.?)?$/i,
    ([, hour, minute, second, half]) => {
      if (!minute && !half) return null;
      const hour24 = half ? (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0) : hour;
      return `${padded(hour24)}:${minute ?? '00'}${second ? `:${second}` : ''}`;
    },
  ],
];
const MONTH_FORMS = [
  [/^(\d{4})[-/. ](\d{1,2})$/, ([, year, month]) => isoMonth(year, month)],
  [/^(\d{1,2})[-/. ](\d{4})$/, ([, month, year]) => isoMonth(year, month)],
  [/^([a-z]{3,9})\.?,? +(\d{4})$/i, ([, month, year]) => isoMonth(year, monthNumber(month))],
];
const WEEK_FORMS = [
  [/^(\d{4})[- ]?W(\d{1,2})$/i, ([, year, week]) => `${year}-W${padded(week)}`],
  [/^(?:week +)?(\d{1,2})(?:[/-]|,? +(?:of +)?)(\d{4})$/i, ([, week, year]) => `${year}-W${padded(week)}`],
];
// Null if the text has none of the forms.
const fromForms = (forms, text) => {
  for (const [pattern, convert] of forms) if (pattern.test(text)) return convert(pattern.exec(text));
  return null;
};
const fromDateTime = (text) => {
  const parts = /^(.+?)(?:T|,? +)(\d{1,2}(?:[:.]\d{2})?(?::\d{2})? *(?:[ap]\.?m\.?)?)$/i.exec(text);
  if (!parts) return null;
  const [date, time] = [fromForms(DATE_FORMS, parts[1]), fromForms(TIME_FORMS, parts[2])];
  return date && time && `${date}T${time}`;
};

// A colour in any notation of CSS.
const fromColour = (text) => {
  if (!CSS.supports('color', text)) return null;
  const context = document.createElement('canvas').getContext('2d');
  context.fillStyle = text;
  return context.fillStyle;
};
// A number, or a share of the range in percent.
const fromRange = (text, { min, max }) => {
  const percent = /^([\d.]+) *%$/.exec(text);
  const [low, high] = [Number(min || 0), Number(max || 100)];
  if (percent) return String(low + ((high - low) * percent[1]) / 100);
  return text !== '' && Number.isFinite(Number(text)) ? text : null;
};

// The value in the form that the input takes. Null means that the form of the text is unknown.
const pickerValue = (input, text) => {
  switch (input.type) {
    case 'date': return fromForms(DATE_FORMS, text);
    case 'time': return fromForms(TIME_FORMS, text);
    case 'month': return fromForms(MONTH_FORMS, text);
    case 'week': return fromForms(WEEK_FORMS, text);
    case 'datetime-local': return fromDateTime(text);
    case 'color': return fromColour(text);
    default: return fromRange(text, input);
  }
};

const setValue = (input, value) =>
  Object.getOwnPropertyDescriptor(input.ownerDocument.defaultView.HTMLInputElement.prototype, 'value').set.call(input, value);

const refusedValue = ({ type }, value) => ({
  refused: `an input of type ${type} does not accept ${JSON.stringify(value)}; use a value such as ${PICKER_EXAMPLES[type]}`,
});

let typedPicker = null; // the input that the caller types into, and its value before

// Sets the value of a picker. If the text has no known form, the caller must type it, from the first part of the input on,
// and call `finishPicker` afterwards.
const setPicker = (input, value) => {
  const text = value.trim();
  const before = input.value;
  const converted = text === '' ? '' : pickerValue(input, text);
  if (converted === null) {
    if (!KEYED_TYPES.has(input.type) || !/\d/.test(text)) return refusedValue(input, value);
    typedPicker = { input, before };
    setValue(input, '');
    input.blur();
    input.focus();
    return { typeKeys: true };
  }
  setValue(input, converted);
  if (input.value === '' && text !== '') {
    setValue(input, before);
    return refusedValue(input, value);
  }
  fireChangeEvents(input);
  return { set: 'input' };
};

// Checks that the typed keys have completed the value; otherwise the old value is restored.
const finishPicker = (value) => {
  const { input, before } = typedPicker;
  typedPicker = null;
  // Keys that fill a year of five digits were meant otherwise.
  if (input.value !== '' && !/^\d{5}/.test(input.value)) return { set: 'input' };
  setValue(input, before);
  return refusedValue(input, value);
};
