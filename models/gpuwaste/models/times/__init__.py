"""Step times fitted to measured programs: roofline and Gaussian process, judged by leaving families out."""
