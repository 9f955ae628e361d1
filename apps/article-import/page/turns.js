// Answers come in any order. What was asked for later is newer: once it is shown, nothing that was asked for before is.
export function makeTurns() {
  let asked = 0;
  let shown = 0;
  /** To be called when asking; what it gives says, once the answer is there, whether it is still news. */
  return () => {
    asked += 1;
    const mine = asked;
    return () => {
      if (mine <= shown) return false;
      shown = mine;
      return true;
    };
  };
}
