{{- /* One entry for each section of each page: the URL, the page's title, the heading, the text. */ -}}
{{- $entries := slice -}}
{{- range where site.Pages "Kind" "in" (slice "home" "page") -}}
  {{- $title := partialCached "title.html" . .RelPermalink -}}
  {{- $url := cond .IsHome "index.html" (strings.TrimPrefix "/" .RelPermalink) -}}
  {{- range $i, $section := split .RawContent "\n## " -}}
    {{- $lines := split $section "\n" -}}
    {{- $heading := cond (eq $i 0) "" (replaceRE "`" "" (index $lines 0) | replaceRE `\[([^\]]*)\]\([^)]*\)` "$1") -}}
    {{- $text := delimit (after 1 $lines) " " | replaceRE `\]\([^)]*\)` "" | replaceRE `-{3,}` " " | replaceRE "[`*|#\\[\\]]+" " " | replaceRE `\s+` " " -}}
    {{- $to := cond (eq $heading "") $url (printf "%s#%s" $url (anchorize $heading)) -}}
    {{- $entries = $entries | append (dict "url" $to "title" $title "heading" $heading "text" $text) -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $entries | jsonify }};
