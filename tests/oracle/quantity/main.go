// What apimachinery takes a quantity for: one JSON string a line in, its value, within 64 bits, or null a line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Value() overflows beyond 64 bits, and for large negatives (-100Ti) long before; a comparison does not.
func value(quantity resource.Quantity) int64 {
	if quantity.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	if quantity.Sign() < 0 {
		quantity.Neg()
		return -value(quantity)
	}
	return quantity.Value()
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Println("null")
			continue
		}
		fmt.Println(value(quantity))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
