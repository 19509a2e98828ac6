; The function that runs a launch on this computer. ``host.py`` replaces what begins with a dollar sign.
; A batch is a workgroup, or a wavefront's tile of pixels. It runs in rounds, from one stop of the workgroup to the
; next: one wavefront after another, and its work-items one after another.

$functions
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
$declarations

define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias %spill, i64 %budget, i64 %first, i64 %last) #0 {
entry:
  %begun = alloca i64
  %met = alloca i32
  %group_met = alloca i32
$variables
  %saved_mode = call i64 @flush()
$entry
  br label %batch_loop

batch_loop:
  %batch = phi i64 [%first, %entry], [%next_batch, %batch_next]
  %is_batch = icmp slt i64 %batch, %last
  br i1 %is_batch, label %batch_body, label %exit
batch_body:
  call void @llvm.memset.p0.i64(ptr %lds, i8 0, i64 $lds_bytes, i1 false)
  br label %round

round:
  store i64 0, ptr %begun
  br label %wavefront

; Run the wavefront whose first work-item is ``begun`` to its next stop.
wavefront:
  %begin_now = load i64, ptr %begun
  store i64 %begin_now, ptr %n
  br label %item

; Run work-item ``n``; it jumps to ``left`` with its stop in ``stopped``.
item:
$work_item

; The wavefront's first work-item sets its stop, ``met``; the others must arrive at the same.
left:
  %stop = load i32, ptr %stopped
  %n_left = load i64, ptr %n
  %begun_left = load i64, ptr %begun
  %is_first = icmp eq i64 %n_left, %begun_left
  %met_before = load i32, ptr %met
  %is_same = icmp eq i32 %met_before, %stop
  %is_met = or i1 %is_first, %is_same
  store i32 %stop, ptr %met
  br i1 %is_met, label %item_done, label %diverged
item_done:
  %n_done = load i64, ptr %n
  %n_next = add i64 %n_done, 1
  store i64 %n_next, ptr %n
  %begun_done = load i64, ptr %begun
  %full = add i64 %begun_done, $wavefront
  %end = call i64 @llvm.smin.i64(i64 %full, i64 $items)
  %is_item = icmp slt i64 %n_next, %end
  br i1 %is_item, label %item, label %wavefront_done

wavefront_done:
  %noted_now = load i64, ptr %noted
  store i64 0, ptr %noted
  %is_noted = icmp ne i64 %noted_now, 0
  br i1 %is_noted, label %carry_out, label %carried_out

; Carry out the wavefront's deferred stores, instruction by instruction. A work-item's note of one is an address (null
; if there is nothing to store), at byte 8 a mask of words, and at byte 16 the words. ``noted`` has a bit for each
; instruction, its number modulo 64, that a work-item noted.
carry_out:
  %number = phi i64 [0, %wavefront_done], [%next_number, %note_over]
  %note_bytes = mul i64 %number, $note
  %note = add i64 %note_bytes, $first_note
  %first_item = load i64, ptr %begun
  %number_bit = and i64 %number, 63
  %noted_from = lshr i64 %noted_now, %number_bit
  %is_number = trunc i64 %noted_from to i1
  br i1 %is_number, label %note_item, label %note_over
note_item:
  %noting = phi i64 [%first_item, %carry_out], [%next_noting, %note_done]
  %record = mul i64 %noting, $spill_bytes
  %offset = add i64 %record, %note
  %note_place = getelementptr i8, ptr %spill, i64 %offset
  %store_place = load ptr, ptr %note_place
  %is_store = icmp ne ptr %store_place, null
  br i1 %is_store, label %store_note, label %note_done
store_note:
  %mask_place = getelementptr i8, ptr %note_place, i64 8
  %mask_byte = load i8, ptr %mask_place
  %mask_bits = trunc i8 %mask_byte to i4
  %mask = bitcast i4 %mask_bits to <4 x i1>
  %words_place = getelementptr i8, ptr %note_place, i64 16
  %words = load <4 x i32>, ptr %words_place
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %words, ptr %store_place, i32 4, <4 x i1> %mask)
  store ptr null, ptr %note_place
  br label %note_done
note_done:
  %next_noting = add i64 %noting, 1
  %noting_end = load i64, ptr %n
  %is_noting = icmp slt i64 %next_noting, %noting_end
  br i1 %is_noting, label %note_item, label %note_over
note_over:
  %next_number = add i64 %number, 1
  %is_note = icmp slt i64 %next_number, $notes
  br i1 %is_note, label %carry_out, label %carried_out

carried_out:
  %wavefront_stop = load i32, ptr %met
  switch i32 %wavefront_stop, label %wavefront_over [ $waits ]

; All wavefronts must arrive at the same stop of the workgroup, ``group_met``.
wavefront_over:
  %begun_over = load i64, ptr %begun
  %is_first_wavefront = icmp eq i64 %begun_over, 0
  %group_met_before = load i32, ptr %group_met
  %is_same_stop = icmp eq i32 %group_met_before, %wavefront_stop
  %is_group_met = or i1 %is_first_wavefront, %is_same_stop
  store i32 %wavefront_stop, ptr %group_met
  br i1 %is_group_met, label %next_wavefront, label %diverged
next_wavefront:
  %next = load i64, ptr %n
  store i64 %next, ptr %begun
  %is_wavefront = icmp slt i64 %next, $items
  br i1 %is_wavefront, label %wavefront, label %round_done
round_done:
  %is_over = icmp eq i32 %wavefront_stop, 0
  br i1 %is_over, label %batch_next, label %round

batch_next:
  %next_batch = add i64 %batch, 1
  %next_place = getelementptr i64, ptr %report, i64 $next
  store i64 %next_batch, ptr %next_place
  %spent_now = load i64, ptr %spent
  %is_spent = icmp ugt i64 %spent_now, %budget
  br i1 %is_spent, label %exit, label %batch_loop

diverged:
  store i32 $diverged, ptr %status
  br label %exit
exit:
  %outside_now = load i64, ptr %outside
  %outside_before = load i64, ptr %counts
  %outside_all = add i64 %outside_before, %outside_now
  store i64 %outside_all, ptr %counts
  call void @restore(i64 %saved_mode)
  %ended = load i32, ptr %status
  ret i32 %ended
}
