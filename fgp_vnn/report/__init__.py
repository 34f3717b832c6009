"""HTML pages, plots and pictures of runs, comparisons and radii."""
