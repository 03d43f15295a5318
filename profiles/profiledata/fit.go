package profiledata

import "gonum.org/v1/gonum/mat"

// fit returns base and slopes that minimise the squares of base + slopes x columns - y. Where several do, the slopes
// are the shortest vector: singular values up to the rounding error of the largest count as zero.
func fit(y []float64, columns ...[]float64) (base float64, slopes []float64) {
	n := len(y)
	centre := make([]float64, len(columns))
	a := mat.NewDense(n, len(columns), nil)
	for j, column := range columns {
		centre[j] = mean(column)
		for i, x := range column {
			a.Set(i, j, x-centre[j])
		}
	}
	base = mean(y)
	b := mat.NewVecDense(n, nil)
	for i := range y {
		b.SetVec(i, y[i]-base)
	}
	slopes = make([]float64, len(columns))
	var svd mat.SVD
	if svd.Factorize(a, mat.SVDThin) {
		const roundingError = 2.220446049250313e-16
		if rank := svd.Rank(roundingError); rank > 0 {
			svd.SolveVecTo(mat.NewVecDense(len(columns), slopes), b, rank)
		}
	}
	for j, c := range centre {
		base -= slopes[j] * c
	}
	return base, slopes
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
