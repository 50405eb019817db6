/* A complaint about the dimensions of a call, as a sentence. */
#ifndef TCF_COMPLAIN_H
#define TCF_COMPLAIN_H

#include "tcf_region.h"
#include "tcf_text.h"

static inline void tcf_put_complaint(TcfText *text, const TcfComplaint *complaint) {
  if (complaint->sentence) {
    tcf_put(text, complaint->sentence);
    return;
  }
  tcf_put(text, complaint->where);
  tcf_put(text, " is ");
  tcf_put_number(text, complaint->found);
  tcf_put(text, "; the model says it ");
  if (complaint->rule) {
    tcf_put(text, "equals ");
    tcf_put(text, complaint->rule);
    tcf_put(text, ", which ");
  }
  tcf_put(text, "is ");
  tcf_put_number(text, complaint->expected);
}

#endif
