// The default theme, with the styles of types on hover, and a column that fits lines of code of 110 characters.
import TwoslashFloatingVue from '@shikijs/vitepress-twoslash/client';
import Theme from 'vitepress/theme';
import '@shikijs/vitepress-twoslash/style.css';
import './contrast.css';
import './wide.css';

export default {
  extends: Theme,
  enhanceApp({ app }) {
    app.use(TwoslashFloatingVue);
  },
};
