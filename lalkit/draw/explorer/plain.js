// A tree without a parser behind it, such as a gold tree: its constituents have no parts.
const kept = {};
const behind = (of) => `${of.end - of.start === 1 ? "one word" : `${of.end - of.start} words`}`;
const letGo = () => false;
const heat = () => null;
const chooseColumn = () => {};

function showPanel() {
  showTitle(span(), "words");
  markHeat();
}
