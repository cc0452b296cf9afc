// Guides come before pages of the API, which repeat every name, and before decisions; PyTorch's names come first.
export const searchOptions = {
  boostDocument: (id) => {
    if (id.includes('/api/')) return 0.3;
    if (id.includes('/decisions/')) return 0.5;
    return id.includes('/from-pytorch') ? 2 : 1;
  },
};
