// A click on a heading sorts the table by that column, a second click reverses the order.
for (const table of document.querySelectorAll('table.sortable')) {
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number(text.replaceAll(',', ''));
    return Number.isNaN(number) || text === '' ? text : number;
  };
  table.querySelectorAll('thead th').forEach((heading, column) => {
    heading.querySelector('button').addEventListener('click', () => {
      const down = heading.getAttribute('aria-sort') === 'ascending';
      for (const other of table.querySelectorAll('thead th')) {
        other.removeAttribute('aria-sort');
        other.querySelector('span').textContent = '⇅';
      }
      heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      heading.querySelector('span').textContent = down ? '▼' : '▲';
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, other) => {
        const [a, b] = [value(one, column), value(other, column)];
        const order = a < b ? -1 : a > b ? 1 : 0;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
