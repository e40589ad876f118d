package structured

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/busdk/bus-agent/agent"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, maxDepth+1) + "{}" + strings.Repeat("}", maxDepth+1)
	var wide strings.Builder // each definition applies two of the one before
	wide.WriteString(`{"$ref":"#/$defs/d14","$defs":{"d0":{}`)
	for i := 1; i < 15; i++ {
		wide.WriteString(strings.NewReplacer("N", string(rune('a'+i)), "I", itoa(i), "J", itoa(i-1)).
			Replace(`,"dI":{"allOf":[{"$ref":"#/$defs/dJ"},{"$ref":"#/$defs/dJ"}]}`))
	}
	wide.WriteString("}}")
	for name, c := range map[string]struct{ schema, says string }{
		"nothing":                 {"", "line 1, column 1"},
		"no JSON":                 {"{\n  \"type\": object}", "line 2, column 11: not JSON"},
		"two values":              {"{} {}", "line 1, column 4: text after the value"},
		"the same name twice":     {`{"properties":{"a":{"type":"string","type":"null"}}}`, `at /properties/a/type: the name "type" occurs twice`},
		"not UTF-8":               {"{\"a\":\"\xff\"}", "UTF-8"},
		"a list":                  {`[]`, "not a JSON object"},
		"true":                    {`true`, "not a JSON object"},
		"too long":                {`{"title":"` + strings.Repeat("x", MaxSchema) + `"}`, "more than 1048576"},
		"too deep":                {deep, "more than 200"},
		"a huge number":           {`{"minimum":1e999}`, "too large"},
		"an unknown type":         {`{"properties":{"a":{"type":"str"}}}`, `at #/properties/a/type: "str" is not a type`},
		"no types":                {`{"type":[]}`, "at #/type: the list is empty"},
		"a keyword's value":       {`{"items":{"minLength":"3"}}`, "at #/items/minLength: not a whole number"},
		"a list of schemas":       {`{"anyOf":{}}`, "at #/anyOf: not a list of schemas"},
		"a schema":                {`{"properties":{"a":[]}}`, "at #/properties/a: a schema is an object, true or false"},
		"names":                   {`{"required":["a",1]}`, "at #/required: not a list of names"},
		"a dependency":            {`{"dependencies":{"a":[1]}}`, "at #/dependencies/a: not a list of names"},
		"tuples of another draft": {`{"items":[{}]}`, "write prefixItems"},
		"a unit of zero":          {`{"multipleOf":0.0}`, "at #/multipleOf: not a number above 0"},
		"names it depends on":     {`{"dependentRequired":{"a":{}}}`, "at #/dependentRequired/a: not a list of names"},
		"a trailing comma":        {"{\n \"type\":\"object\",\n}", "line 2, column 17: trailing comma"},
		"an unknown draft":        {`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "not a supported draft"},
		"a draft further down":    {`{"not":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}`, "at #/not/$schema"},
		"a pattern":               {`{"properties":{"a":{"pattern":"(?=x)"}}}`, "invalid or unsupported Perl syntax"},
		"a pattern of names":      {`{"patternProperties":{"(":{}}}`, "missing closing )"},
		"a huge pattern":          {`{"pattern":"((((x{100}){100}){100}){100})"}`, "expression nests too deeply|invalid repeat count|expression too large"},
		"nothing there":           {`{"properties":{"a":{"$ref":"#/$defs/b"}}}`, `at #/properties/a: there is no schema at "#/$defs/b"`},
		"no schema there":         {`{"title":"x","$ref":"#/title"}`, `there is no schema at "#/title"`},
		"another file":            {`{"$ref":"other.json"}`, "nothing outside is read"},
		"another place":           {`{"items":{"$ref":"https://example.com/a.json#/b"}}`, "at #/items/$ref"},
		"an anchor":               {`{"$anchor":"a"}`, "$anchor is not supported"},
		"a dynamic reference":     {`{"$dynamicRef":"#a"}`, "$dynamicRef is not supported"},
		"an ID further down":      {`{"$defs":{"a":{"$id":"https://example.com/a"}}}`, "$id is allowed only at the top"},
		"itself":                  {`{"$ref":"#"}`, "refers to itself without end"},
		"itself in a circle":      {`{"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}}}`, "refers to itself without end"},
		"too much work":           {wide.String(), "more than 1000 schemas apply to one value"},
	} {
		_, err := Compile([]byte(c.schema))
		said := false
		for part := range strings.SplitSeq(c.says, "|") {
			said = said || err != nil && strings.Contains(err.Error(), part)
		}
		if !errors.Is(err, agent.ErrUsage) || !said || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

// What is large, but not absurd, is taken.
func TestCompileTakes(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"a long enum":      `{"items":{"enum":[` + strings.Repeat(`"x",`, 4000) + `"y"]}}`,
		"a long pattern":   `{"pattern":"^.{1,1000}$"}`,
		"patterns in each": `{"patternProperties":{"^[a-z]{1,64}$":{"$ref":"#"},"^x-":{"pattern":"^[0-9a-f]{8}-[0-9a-f]{4}$"}}}`,
	} {
		if _, err := Compile([]byte(schema)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// Nothing outside of a schema is read, wherever it is named.
func TestCompileReadsNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	asked := make(chan struct{})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			close(asked)
		}
	}()
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"http://" + listener.Addr().String() + "/a.json", "file://" + file, file} {
		for _, keyword := range []string{"$ref", "$schema", "$dynamicRef"} {
			text, err := json.Marshal(map[string]any{"properties": map[string]any{"a": map[string]any{keyword: place}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Compile(text); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("%s: %v", text, err)
			}
		}
		text, err := json.Marshal(map[string]any{"$id": place, "type": "integer", "properties": map[string]any{"a": map[string]any{"$ref": "#"}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if _, err := s.Check("{}"); err == nil { // the other one would let it pass
			t.Errorf("%s: the object was taken", text)
		}
	}
	listener.Close()
	select {
	case <-asked:
		t.Error("the network was asked")
	default:
	}
}

const weather = `{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"integer"}},"required":["city","degrees"],"additionalProperties":false}`

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, answer, want, says string }{
		"valid":             {weather, ` {"degrees": 3, "city":"Turku"}` + "\n", `{"degrees": 3, "city":"Turku"}`, ""},
		"another type":      {weather, `{"degrees":"3","city":"Turku"}`, "", `/degrees: must be an integer, not the string "3"`},
		"missing":           {weather, `{"city":"Turku"}`, "", `lacks the property "degrees"`},
		"one too many":      {weather, `{"degrees":3,"city":"Turku","sky":"blue"}`, "", `/sky: is not allowed`},
		"in a list":         {`{"type":"array","items":` + weather + `}`, `[{"city":"a","degrees":1},{"city":1,"degrees":1}]`, "", `/1/city: must be a string, not the number 1`},
		"a name twice":      {weather, `{"degrees":3,"city":"Turku","degrees":4}`, "", `at /degrees: the name "degrees" occurs twice`},
		"NaN":               {weather, `{"degrees":NaN,"city":"Turku"}`, "", `no JSON value`},
		"a huge number":     {`{"type":"number"}`, `1e400`, "", `the number 1e400 is too large`},
		"a big integer":     {`{"type":"integer"}`, `123456789012345678901234567890`, `123456789012345678901234567890`, ""},
		"bigger than a bit": {`{"maximum":18446744073709551615}`, `18446744073709551615`, `18446744073709551615`, ""},
		"a whole float":     {`{"type":"integer"}`, `3.0`, `3.0`, ""},
		"null":              {`{"const":null}`, `null`, `null`, ""},
		"escapes stay":      {`{"type":"string"}`, `"\u0041\ud83d\ude00\/"`, `"\u0041\ud83d\ude00\/"`, ""},
		"length counts":     {`{"type":"string","maxLength":1}`, `"\ud83d\ude00"`, `"\ud83d\ude00"`, ""},
		"a reference":       {`{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{"last":1}}}`, "", `/next/next/last: is not allowed`},
		"a reference's way": {`{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"null"}}}`, `1`, "", `must be null, not the number 1`},
		"draft-07":          {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, "", `/1: is not allowed`},
		"draft-07 ignores":  {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"$ref":"#/definitions/a","type":"null"},"definitions":{"a":{"type":"string"}}}`, `["a"]`, `["a"]`, ""},
		"format":            {`{"format":"date-time"}`, `"tomorrow"`, `"tomorrow"`, ""},
		"control bytes":     {weather, `{"city":"\u001b[31m","degrees":"` + "\u009b31m" + `"}`, "", `/degrees: must be an integer, not the string "`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Check(c.answer)
			if string(got) != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %s, %v", got, err)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b\u009b") || len(err.Error()) > maxWords+8) {
				t.Errorf("these words cannot be printed: %q", err)
			}
		})
	}
}

// A long answer is not quoted whole.
func TestWordsAreShort(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Check(`["` + strings.Repeat("long ", 1<<18) + `"]`); err == nil || len(err.Error()) > maxWords+8 {
		t.Errorf("%.200v", err)
	}
}

// Another validator says the same of schemas of many kinds.
func TestCheckAsOthersDo(t *testing.T) {
	t.Parallel()
	schemas := []string{
		weather, `{}`, `{"type":["integer","null"]}`, `{"enum":[1,"a",null,[1],{"a":1}]}`, `{"const":{"a":[1,2]}}`, `{"minimum":2,"exclusiveMaximum":7}`,
		`{"multipleOf":3}`, `{"multipleOf":0.01}`, `{"anyOf":[{"unevaluatedItems":false},{"prefixItems":[{"type":"integer"}]}],"unevaluatedItems":{"type":"string"}}`, `{"contains":{"type":"integer"},"unevaluatedItems":{"type":"string"}}`, `{"if":{"required":["a"],"properties":{"a":{}}},"else":{"properties":{"b":{}}},"unevaluatedProperties":false}`,
		`{"minLength":1,"maxLength":2}`, `{"pattern":"^a+$"}`, `{"items":{"type":"integer"},"minItems":1,"maxItems":2}`,
		`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `{"prefixItems":[true],"items":false}`, `{"uniqueItems":true}`,
		`{"contains":{"type":"integer"},"minContains":2,"maxContains":3}`, `{"minProperties":1,"maxProperties":1}`, `{"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":false}`,
		`{"propertyNames":{"maxLength":1}}`, `{"dependentRequired":{"a":["b"]}}`, `{"dependentSchemas":{"a":{"required":["b"]}}}`,
		`{"allOf":[{"type":"integer"},{"minimum":3}]}`, `{"anyOf":[{"type":"string"},{"minimum":3}]}`, `{"oneOf":[{"type":"integer"},{"minimum":3}]}`,
		`{"not":{"type":"string"}}`, `{"if":{"type":"integer"},"then":{"minimum":3},"else":{"type":"string"}}`,
		`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false}`,
		`{"prefixItems":[{}],"unevaluatedItems":{"type":"string"}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}`,
		`{"properties":{"a":{"$ref":"#"}},"additionalProperties":{"type":"integer"}}`, `{"required":["a"],"properties":{"a":false}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"maxProperties":2}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","contains":{"type":"integer"}}`,
	}
	answers := []string{
		`null`, `true`, `0`, `1`, `3`, `6`, `7`, `-2`, `2.5`, `19.99`, `0.015`, `3.0`, `1e2`, `""`, `"a"`, `"aa"`, `"aaa"`, `"b"`, `"ä"`,
		`[]`, `[1]`, `[1,2]`, `[1,1]`, `[1,1.0]`, `["a"]`, `["a",1]`, `["a","b"]`, `[1,"a",2]`, `[1,2,3,4]`, `[[1],[1]]`, `[{"a":1,"b":2},{"b":2,"a":1}]`,
		`{}`, `{"a":1}`, `{"a":"x"}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":[1,2]}`, `{"a":{"a":{}}}`, `{"a":{"b":"x"}}`, `{"ab":1}`, `{"a":1,"b":2,"c":3}`, `{"city":"a","degrees":1}`,
	}
	valid := 0
	for _, schema := range schemas {
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("test:schema", doc); err != nil {
			t.Fatal(err)
		}
		other, err := c.Compile("test:schema")
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range answers {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
			if err != nil {
				t.Fatal(err)
			}
			_, got := s.Check(answer)
			want := other.Validate(value)
			if (got == nil) != (want == nil) {
				t.Errorf("%s under %s: got %v, want %v", answer, schema, got, want)
			}
			if got == nil {
				valid++
			}
		}
	}
	if valid < 200 {
		t.Errorf("only %d were valid", valid)
	}
}

// A Schema may be used by several goroutines at once.
func TestCheckTogether(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := s.Check(`{"city":"Turku","degrees":3}`)
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
