/* Refusing a call with a sentence that names what the model and the call disagree about. */
#ifndef TCF_REFUSE_H
#define TCF_REFUSE_H

#include "tcf_complain.h"
#include "tcf_region.h"
#include "tcf_text.h"

static inline OrtStatus *tcf_refuse_text(const TcfRegion *region, TcfText *text) {
  TcfText whole = {0};
  tcf_put(&whole, "tcfuse: ");
  tcf_put(&whole, region->name);
  tcf_put(&whole, ": ");
  tcf_put(&whole, text->text);
  return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, whole.text);
}

static inline OrtStatus *tcf_refuse(const TcfRegion *region, const char *sentence) {
  TcfText text = {0};
  tcf_put(&text, sentence);
  return tcf_refuse_text(region, &text);
}

static inline OrtStatus *tcf_refuse_rank(const TcfRegion *region, size_t input, size_t found) {
  TcfText text = {0};
  tcf_put(&text, "input ");
  tcf_put_number(&text, (int64_t)input);
  tcf_put(&text, " has rank ");
  tcf_put_number(&text, (int64_t)found);
  tcf_put(&text, "; the model says ");
  tcf_put_number(&text, region->ports[input].rank);
  return tcf_refuse_text(region, &text);
}

static inline OrtStatus *tcf_refuse_dims(const TcfRegion *region, const TcfComplaint *complaint) {
  TcfText text = {0};
  tcf_put_complaint(&text, complaint);
  return tcf_refuse_text(region, &text);
}

#endif
