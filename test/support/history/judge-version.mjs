// Which judge found a run good: raised whenever the judge gets stricter. Figures are of runs that the present one has judged.
export const JUDGE = 5;
