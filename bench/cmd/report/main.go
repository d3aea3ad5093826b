// Report makes tables of what go test -bench prints, read from standard input.
// Benchmarks are named Area/case/impl=NAME; what ran several times counts by
// its median. Each table has one row a case and one column an implementation,
// with the quotient to -base.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	base  = flag.String("base", "mcpkit", "the implementation that others are divided by")
	units = flag.String("units", "ns/op,B/op,allocs/op", "the metrics to tabulate, in order")
)

var line = regexp.MustCompile(`^Benchmark(\S+?)/impl=(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

type cell struct{ row, unit, impl string }

func main() {
	flag.Parse()
	values := make(map[cell][]float64)
	var rows, impls []string
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		m := line.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		if !slices.Contains(rows, m[1]) {
			rows = append(rows, m[1])
		}
		if !slices.Contains(impls, m[2]) {
			impls = append(impls, m[2])
		}
		fields := strings.Fields(m[3])
		for i := 0; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				c := cell{m[1], fields[i+1], m[2]}
				values[c] = append(values[c], v)
			}
		}
	}
	for _, unit := range strings.Split(*units, ",") {
		table(values, rows, impls, unit)
	}
}

func table(values map[cell][]float64, rows, impls []string, unit string) {
	has := func(row, impl string) bool { return len(values[cell{row, unit, impl}]) > 0 }
	columns := slices.DeleteFunc(slices.Clone(impls), func(impl string) bool {
		return !slices.ContainsFunc(rows, func(row string) bool { return has(row, impl) })
	})
	if len(columns) == 0 {
		return
	}
	fmt.Printf("\n| %s | %s |\n| --- |%s\n", unit, strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)))
	for _, row := range rows {
		if !slices.ContainsFunc(columns, func(impl string) bool { return has(row, impl) }) {
			continue
		}
		by := median(values[cell{row, unit, *base}])
		fmt.Printf("| %s |", row)
		for _, impl := range columns {
			switch v := median(values[cell{row, unit, impl}]); {
			case !has(row, impl):
				fmt.Print(" |")
			case impl == *base || by == 0:
				fmt.Printf(" %s |", short(v))
			default:
				fmt.Printf(" %s (%.3g) |", short(v), v/by)
			}
		}
		fmt.Println()
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// short writes a number with three digits that count.
func short(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
