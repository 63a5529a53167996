import { render } from 'preact';
import '../common/theme.css';
import { Brand } from '../common/Brand';
import { ThemeToggle } from '../common/theme';

function App() {
  return (
    <header class="topbar">
      <Brand page="monitor" />
      <span class="grow" />
      <ThemeToggle />
    </header>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
