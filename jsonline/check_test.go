package jsonline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

func ExampleCheckNames() {
	fmt.Println(jsonline.CheckNames([]byte(`{"a": [{"b": 1, "b": 2}]}`), nil))
	// Output: member "b" is repeated
}

func ExampleDecode() {
	var settings struct {
		Limit int `json:"limit"`
	}
	fmt.Println(jsonline.Decode([]byte(`{"limit": 5}`), &settings), settings.Limit)
	fmt.Println(jsonline.Decode([]byte(`{"limit": "five"}`), &settings))
	// Output:
	// <nil> 5
	// limit is not of the right type
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                  "it is not JSON: unexpected end of JSON input",
		`{"a":1} {}`:        "it is not JSON: invalid character '{' after top-level value",
		`[]`:                "it is not of the right type",
		`{"a":{"b":"x"}}`:   "a.b is not of the right type",
		`{"c":1}`:           `unknown field "c"`,
		`{"a":{},"a":null}`: `member "a" is repeated`,
	} {
		var to struct {
			A struct {
				B int `json:"b"`
			} `json:"a"`
		}
		if err := jsonline.Decode([]byte(text), &to); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	refuse := func(name string) error {
		if name == "no" {
			return errors.New("refused")
		}
		return nil
	}
	for text, want := range map[string]string{
		`{"a":{"b":1},"b":{"a":1,"c":[{"a":1},{"a":1}]}}`: "<nil>",
		`[1,"x",null,true,{}]`:                            "<nil>",
		`null`:                                            "<nil>",
		`{"a":1,"A":2}`:                                   "<nil>",
		`{"a":1,"\u0061":2}`:                              `member "a" is repeated`,
		`{"a":{"x":[1,2]},"b":"{","a":2}`:                 `member "a" is repeated`,
		`[[{"x":{"k":1,"k":2}}]]`:                         `member "k" is repeated`,
		"{\"\xff\":1,\"\xfe\":2}":                         "member \"\ufffd\" is repeated",
		`{"a":[{"no":1}]}`:                                "refused",
		`{"a":`:                                           "<nil>",
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000): "<nil>",
	} {
		if got := fmt.Sprint(jsonline.CheckNames([]byte(text), refuse)); got != want {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
}
