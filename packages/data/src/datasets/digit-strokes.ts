// The shapes of the digits: each variant is a list of strokes, and each stroke a list of points joined by
// straight lines. Coordinates are from −1 to 1, x to the right and y down. A digit is about 1.2 wide and 1.8
// high.

export type Point = readonly [x: number, y: number];
export type Stroke = readonly Point[];
export type Glyph = readonly Stroke[];

/** Returns part of an ellipse around (x, y) between two angles in degrees; 0 points right, 90 down. */
function arc(x: number, y: number, radiusX: number, radiusY: number, from: number, to: number): Point[] {
  const steps = Math.ceil(Math.abs(to - from) / 24);
  return Array.from({ length: steps + 1 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / steps) * Math.PI) / 180;
    return [x + radiusX * Math.cos(angle), y + radiusY * Math.sin(angle)] as const;
  });
}

/** The variants of each digit, 0 to 9. */
export const digitGlyphs: readonly (readonly Glyph[])[] = [
  [[arc(0, 0, 0.58, 0.9, -90, 270)], [arc(0, 0, 0.46, 0.9, -60, 300)]],
  [
    [
      [
        [0, -0.9],
        [0, 0.9],
      ],
    ],
    [
      [
        [-0.32, -0.55],
        [0.05, -0.9],
        [0.05, 0.9],
      ],
    ],
    [
      [
        [-0.3, -0.6],
        [0, -0.9],
        [0, 0.9],
      ],
      [
        [-0.38, 0.9],
        [0.38, 0.9],
      ],
    ],
  ],
  [
    [[...arc(0, -0.42, 0.52, 0.48, 190, 385), [-0.55, 0.9], [0.58, 0.9]]],
    [[...arc(0, -0.45, 0.5, 0.45, 200, 400), ...arc(-0.3, 0.72, 0.2, 0.18, 300, 60), [0.6, 0.85]]],
  ],
  [
    [[...arc(-0.05, -0.45, 0.5, 0.45, 205, 450), ...arc(-0.05, 0.43, 0.58, 0.47, -90, 155)]],
    [[[-0.5, -0.9], [0.45, -0.9], [-0.05, -0.15], ...arc(-0.05, 0.38, 0.56, 0.52, -80, 150)]],
  ],
  [
    [
      [
        [0.28, 0.9],
        [0.28, -0.9],
        [-0.6, 0.3],
        [0.62, 0.3],
      ],
    ],
    [
      [
        [-0.45, -0.9],
        [-0.52, 0.08],
        [0.55, 0.08],
      ],
      [
        [0.32, -0.75],
        [0.25, 0.9],
      ],
    ],
  ],
  [
    [[[0.5, -0.9], [-0.4, -0.9], [-0.45, -0.12], ...arc(-0.02, 0.35, 0.55, 0.55, -120, 145)]],
    [
      [[-0.4, -0.85], [-0.42, -0.1], ...arc(-0.02, 0.4, 0.5, 0.5, -110, 140)],
      [
        [-0.4, -0.85],
        [0.5, -0.9],
      ],
    ],
  ],
  [
    [[[0.38, -0.88], ...arc(0.12, 0.1, 0.62, 0.8, 250, 180), ...arc(0, 0.42, 0.5, 0.48, 180, -180)]],
    [[[0.1, -0.9], [-0.4, 0.2], ...arc(0.02, 0.45, 0.45, 0.45, 180, -180)]],
  ],
  [
    [
      [
        [-0.55, -0.88],
        [0.55, -0.88],
        [-0.1, 0.9],
      ],
    ],
    [
      [
        [-0.55, -0.85],
        [0.5, -0.9],
        [0.1, 0],
        [0, 0.9],
      ],
      [
        [-0.25, 0.05],
        [0.4, 0],
      ],
    ],
  ],
  [
    [arc(0, -0.45, 0.44, 0.44, 90, 450), arc(0, 0.44, 0.54, 0.46, -90, 270)],
    [arc(0.03, -0.48, 0.36, 0.42, 90, 450), arc(0, 0.4, 0.44, 0.48, -90, 270)],
  ],
  [
    [[...arc(0, -0.42, 0.5, 0.48, 0, -360), [0.45, 0.2], [0.28, 0.9]]],
    [[...arc(0, -0.42, 0.48, 0.46, 0, -360), ...arc(-0.1, 0.2, 0.58, 0.7, 0, 130)]],
  ],
];
