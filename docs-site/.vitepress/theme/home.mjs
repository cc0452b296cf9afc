// Replaces the theme's landing page, which has no main landmark for screen readers to jump to.
import { Content } from 'vitepress';
import { VPHomeFeatures, VPHomeHero } from 'vitepress/theme';
import { h } from 'vue';

export default {
  render: () =>
    h('main', { style: { marginBottom: '96px' } }, [h(VPHomeHero), h(VPHomeFeatures), h(Content)]),
};
